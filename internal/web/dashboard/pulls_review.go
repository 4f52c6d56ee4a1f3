package dashboard

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// sentReview is a form of the page of a pull request, as it was sent.
type sentReview struct {
	review.Request
	query pullParams    // what the page showed
	line  pages.LineKey // that is commented on; zero for none
	text  string        // what was written
}

// reviewOf returns a review of the pull request that the address names, whatever is wrong with it, for the record of a
// refusal.
func reviewOf(req *handler.Request) review.Request {
	number, _ := strconv.Atoi(req.PathValue("number"))
	return review.Request{
		Provider: handler.CleanLine(req.PathValue("provider")), Owner: handler.CleanLine(req.PathValue("owner")),
		Name: handler.CleanLine(req.PathValue("repo")), Number: number,
		By: req.Caller(),
	}
}

// reviewByForm does what a person has decided. What cannot be understood is recorded here, everything else by the
// reviewer. A form that is refused comes back with what was written.
func (h *pullPages) review(req *handler.Request) (handler.Response, error) {
	sent, err := h.readReview(req)
	if err != nil {
		return h.sendBack(req, sent, h.reviewer.Refused(req.Context(), sent.Request, err))
	}
	outcome, err := h.reviewer.Do(req.Context(), sent.Request)
	if err != nil {
		return h.sendBack(req, sent, err)
	}
	t := target{sent.Provider, sent.Owner, sent.Name, sent.Number}
	if len(outcome.Warnings) == 0 {
		return h.goTo(t.Path() + sent.query.after(sent.Verb)), nil
	}
	view, err := h.view(req, t, sent.query)
	if err != nil {
		return handler.Response{}, errors.Join(fault.New(fault.CodeOf(err), "%s But: %s", doneText(sent.Verb),
			fault.From(err).Message), err)
	}
	view.Done = doneText(sent.Verb)
	view.Warnings = outcome.Warnings
	return h.html("pull", view)
}

// after returns the query, and the place on the page, to which a browser is led when something was done.
func (q pullParams) after(verb string) string {
	query := url.Values{"done": {verb}}
	if q.View != "" {
		query.Set("view", q.View)
	}
	if q.Part > 1 {
		query.Set("part", strconv.Itoa(q.Part))
	}
	place := ""
	if q.On != "" {
		place = "#" + q.On
	}
	return "?" + query.Encode() + place
}

// sendBack shows the page again with the form as it was sent, and what is wrong with it beside its field. Who asked for
// no page, and where the page cannot be shown, gets the error.
func (h *pullPages) sendBack(req *handler.Request, sent sentReview, why error) (handler.Response, error) {
	t, err := targetOf(req)
	if err != nil || !handler.PrefersHTML(req.Request) {
		return handler.Response{}, why
	}
	e := fault.From(why)
	view, err := h.view(req, t, sent.query)
	if err != nil || !view.May() {
		return handler.Response{}, why
	}
	view.Position = "" // nothing but the form is of interest
	failed := h.env.Message(e.Message)
	if sent.line == (pages.LineKey{}) || !view.fillLine(sent, failed) {
		at := max(0, slices.IndexFunc(view.Acts, func(a actForm) bool { return a.Verb == sent.Verb }))
		view.Acts[at].Comment, view.Acts[at].Failed = sent.text, failed
		view.Acts[at].Box = sent.Verb == mergeVerb
	}
	return h.htmlAgain(e, "pull", view)
}

// fillLine puts what was written into the form below the line; false if that is not shown.
func (v *pullPage) fillLine(sent sentReview, failed string) bool {
	if v.Diff == nil {
		return false
	}
	for i := range v.Diff.Files {
		for j := range v.Diff.Files[i].Hunks {
			for k := range v.Diff.Files[i].Hunks[j].Lines {
				if form := v.Diff.Files[i].Hunks[j].Lines[k].Form; form != nil {
					form.Text, form.Failed = sent.text, failed
					return true
				}
			}
		}
	}
	return false
}

// readReview reads what a person has decided. With an error the request is as far as it was understood.
func (h *pullPages) readReview(req *handler.Request) (sentReview, error) {
	r := sentReview{Request: reviewOf(req)}
	t, err := targetOf(req)
	if err != nil {
		return r, err
	}
	r.Provider, r.Owner, r.Name, r.Number = t.provider, t.owner, t.name, t.number
	form, err := handler.ReadForm(req)
	if err != nil {
		return r, err
	}
	r.text = strings.ReplaceAll(form.Get("comment"), "\r\n", "\n")
	r.Comment = r.text
	r.Head, r.Force = form.Get("head"), form.Get("force") == "yes"
	r.query = shownOf(form)
	if form.Has("path") {
		line, err := strconv.ParseUint(form.Get("line"), 10, 31)
		if err != nil || form.Get("path") == "" {
			return r, fault.New(fault.InvalidArgument, "a comment on a line names a file and a line from 1")
		}
		r.line = pages.LineKey{Path: form.Get("path"), Line: int(line), Before: form.Get("before") == "yes"}
		r.Comment = ""
		r.Comments = []gitprovider.LineComment{{Path: r.line.Path, Line: r.line.Line, Before: r.line.Before, Body: r.text}}
	}
	if len(form["action"]) != 1 {
		return r, review.UnknownVerb()
	}
	if r.Verb = form.Get("action"); r.Verb == mergeVerb && !r.Force {
		r.Unseen = h.unseen(req, t, r.Head)
	}
	return r, nil
}

// shownOf returns what the page with a form showed. An invalid part counts as the first part.
func shownOf(form url.Values) (q pullParams) {
	if part, err := strconv.ParseUint(form.Get("part"), 10, 16); err == nil {
		q.Part = int(part)
	}
	if form.Get("view") == "split" {
		q.View = "split"
	}
	if on := form.Get("on"); isMark(on) {
		q.On = on
	}
	return q
}

// isMark reports whether it is the mark of a line; see pages.DiffLine.
func isMark(s string) bool {
	return len(s) > 0 && len(s) <= maxMark && strings.Trim(s, "fno0123456789") == ""
}

// refused records a review that the guard has refused.
func (h *pullPages) refused(req *handler.Request, why *fault.Error) error {
	return h.reviewer.Refused(req.Context(), reviewOf(req), why)
}
