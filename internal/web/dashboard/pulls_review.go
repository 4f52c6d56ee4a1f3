package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
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
func reviewOf(req *httpx.Request) review.Request {
	number, _ := strconv.Atoi(req.PathValue("number"))
	return review.Request{
		Provider: httpx.CleanLine(req.PathValue("provider")), Owner: httpx.CleanLine(req.PathValue("owner")),
		Name: httpx.CleanLine(req.PathValue("repo")), Number: number,
		By: req.Caller(),
	}
}

// review does what a person has decided. What cannot be understood is recorded here, everything else by the
// reviewer. A form that is refused comes back with what was written.
func (h *pullPages) review(req *httpx.Request) (httpx.Response, error) {
	sent, err := h.readReview(req)
	if err != nil {
		return h.sendBack(req, sent, h.reviewer.Refused(req.Context(), sent.Request, err))
	}
	outcome, err := h.reviewer.Do(req.Context(), sent.Request)
	if err != nil {
		return h.sendBack(req, sent, err)
	}
	t := pullAddress{sent.Provider, sent.Owner, sent.Name, sent.Number}
	if len(outcome.Warnings) == 0 {
		return h.goTo(t.Path() + sent.query.doneAddress(sent.Verb)), nil
	}
	view, err := h.loadPage(req, t, sent.query)
	if err != nil {
		return httpx.Response{}, errors.Join(fault.New(fault.CodeOf(err), "%s But: %s", doneText(sent.Verb),
			fault.From(err).Message), err)
	}
	view.Done = doneText(sent.Verb)
	view.Warnings = outcome.Warnings
	return h.html("pull", view)
}

// doneAddress returns the query, and the place on the page, to which a browser is led when something was done.
func (q pullParams) doneAddress(verb string) string {
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
func (h *pullPages) sendBack(req *httpx.Request, sent sentReview, why error) (httpx.Response, error) {
	t, err := targetOf(req)
	if err != nil || !httpx.PrefersHTML(req.Request) {
		return httpx.Response{}, why
	}
	e := fault.From(why)
	view, err := h.loadPage(req, t, sent.query)
	if err != nil || !view.May() {
		return httpx.Response{}, why
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

// fillWords puts what somebody had written before they had to sign in again into the form that they had.
func (v *pullPage) fillWords(q pullParams) {
	const back = "You had to sign in again. Nothing was sent: what you wrote is here."
	sent := sentReview{text: q.Words}
	at := slices.IndexFunc(v.Acts, func(a actForm) bool { return a.Verb == q.Say })
	if at < 0 || q.On != "" && v.fillLine(sent, back) {
		return
	}
	v.Acts[at].Comment, v.Acts[at].Failed = q.Words, back
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
func (h *pullPages) readReview(req *httpx.Request) (sentReview, error) {
	r := sentReview{Request: reviewOf(req)}
	t, err := targetOf(req)
	if err != nil {
		return r, err
	}
	r.Provider, r.Owner, r.Name, r.Number = t.provider, t.owner, t.name, t.number
	form, err := httpx.ReadForm(req)
	if err != nil {
		return r, err
	}
	r.text = strings.ReplaceAll(form.Get("comment"), "\r\n", "\n")
	r.Comment = r.text
	r.Head, r.Force = form.Get("head"), form.Get("force") == "yes"
	r.Acknowledged = policy.SplitClasses(form.Get("acknowledged"))
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
	if view := form.Get("view"); view == "split" || view == "read" {
		q.View = view
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

// recordRefusedReview records a review that the guard has refused.
func (h *pullPages) recordRefusedReview(req *httpx.Request, why *fault.Error) error {
	return h.reviewer.Refused(req.Context(), reviewOf(req), why)
}

// decision holds a person's possible decisions, and the last one.
type decision struct {
	Acts     []actForm
	Why      string    // why there are none
	Done     string    // what was just done
	Next     *waitItem // what else waits, after something was done; nil for nothing
	Warnings []string
}

// May reports whether there is something to do.
func (d decision) May() bool { return len(d.Acts) > 0 }

// InMenu reports whether there are acts without a button of their own.
func (d decision) InMenu() bool {
	return slices.ContainsFunc(d.Acts, func(a actForm) bool { return !a.InBar })
}

// reviewAction is a possible action of a person on a pull request.
type reviewAction struct {
	actForm
	done string
}

// reviewActions returns all of them.
func reviewActions() []reviewAction {
	const bound = "If the branch moves on, nothing is done. It is recorded under your name."
	return []reviewAction{
		{actForm{Verb: "comment", Text: "Comment", Icon: "message-2", Says: bound, Label: "What to say", Needs: true,
			InBar: true}, "Your comment is recorded."},
		{actForm{Verb: "request-changes", Text: "Request changes", Says: bound, Label: "What to change", Needs: true,
			InBar: true}, "You have asked for changes."},
		{actForm{Verb: "approve", Text: "Approve", Icon: "check", Tone: "go", Says: bound,
			Label: "What to say (may be empty)", InBar: true}, "You have approved it."},
		{actForm{
			Verb: mergeVerb, Text: "Merge", Icon: "git-merge", Says: "It removes the branch, and cannot be undone here.",
			Label: "For the message of the merge commit (may be empty)",
		}, "You have merged it."},
		{actForm{Verb: "close", Text: "Close without merging", Icon: "git-pull-request-closed", Tone: "no", Says: bound,
			Label: "Why (may be empty)"}, "You have closed it."},
		{actForm{
			Verb: review.LiftCooldown, Text: "Lift its cooldown", Icon: "clock",
			Says: "Agents may propose changes to its files again at once.", Label: "Why (may be empty)", InBar: true,
		}, "Its files may be proposed again at once."},
	}
}

// actsFor returns a person's possible actions on a pull request in the state. Merging has a button of its own once
// there are no obstacles.
func actsFor(state gitprovider.State, stands views.Word, obstacles []string) (out []actForm) {
	ready := len(obstacles) == 0 && stands == views.NextActor(record.StandingReady)
	for _, a := range reviewActions() {
		lifts := a.Verb == review.LiftCooldown
		if lifts != (state == gitprovider.StateClosed) && a.Verb != "comment" || !lifts && state != gitprovider.StateOpen &&
			a.Verb != "comment" {
			continue
		}
		act := a.actForm
		switch {
		case act.Verb == mergeVerb:
			act.Obstacles, act.Box, act.InBar = obstacles, len(obstacles) > 0, ready
			if ready {
				act.Tone = "go"
			} else {
				act.Text = "Merge all the same"
			}
		case act.Verb == "approve" && ready:
			act.Tone = ""
		}
		out = append(out, act)
	}
	return out
}

// doneText says what was just done; "" for nothing.
func doneText(verb string) string {
	for _, a := range reviewActions() {
		if a.Verb == verb {
			return a.done
		}
	}
	return ""
}

const (
	mergeVerb   = "merge"
	maxRendered = 64 << 10 // bytes of a file that is shown rendered
	maxMark     = 40
)

// showDifference shows a part of the difference, with the comments on its lines, and notes that it was shown.
func (h *pullPages) showDifference(ctx context.Context, req *httpx.Request, view *pullPage, detail review.Detail,
	q pullParams) error {
	t := view.Target
	key := seenKey{httpx.Key(req.Principal.Actor), t, detail.HeadCommit}
	switch {
	case detail.DiffTooLarge:
		view.DiffNote = "The difference has more than 16 MiB and is not shown; use git."
		return nil
	case detail.Diff == "":
		view.DiffNote = "There is no difference to show."
		h.seen.markSeen(key, 1, 1)
		return nil
	}
	diff := pages.ParseDiff(h.env.Redact(detail.Diff), q.View == "split", q.Part)
	diff.Here, diff.Read = h.base+t.Path(), q.View == "read"
	if paths := diff.Paths(); len(paths) > 0 {
		repo := gitprovider.RepoRef{Owner: t.owner, Name: t.name}
		texts, err := h.reviewer.Texts(ctx, t.provider, repo, detail.HeadCommit, paths, maxRendered)
		if err != nil {
			return err
		}
		for path, text := range texts {
			texts[path] = h.env.Redact(text)
		}
		diff.Render(texts)
		diff.Surround(texts)
	}
	diff.May = req.Principal.Scopes.Has(access.Review)
	mark := q.On
	if !diff.May {
		mark = ""
	}
	diff.Annotate(notesOf(detail), mark, func(key pages.LineKey) *pages.LineForm {
		return &pages.LineForm{
			Action: h.base + t.Path() + "/review", Head: detail.HeadCommit, Path: key.Path, Line: key.Line, Before: key.Before,
			Cancel: diff.To(diff.Part) + "#" + mark, Shown: diff.Shown(mark),
		}
	})
	view.Diff = &diff
	if !diff.Read { // which does not show what goes
		h.seen.markSeen(key, diff.Part, diff.Parts)
	}
	return nil
}

// notesOf returns the comments on lines of the head, by line.
func notesOf(detail review.Detail) map[pages.LineKey][]pages.LineNote {
	notes := map[pages.LineKey][]pages.LineNote{}
	for _, r := range detail.Reviews {
		for _, c := range r.Comments {
			if c.Commit == detail.HeadCommit {
				key := pages.LineKey{Path: c.Path, Line: c.Line, Before: c.Before}
				notes[key] = append(notes[key], pages.LineNote{Author: r.Author, State: views.Review(r.State), Body: c.Body,
					At: r.SubmittedAt})
			}
		}
	}
	return notes
}

// obstacles say why a pull request should not be merged yet: what this person has not seen, who asks for changes, which
// checks fail.
func (h *pullPages) obstacles(req *httpx.Request, t pullAddress, detail review.Detail) (out []string) {
	missing, parts := h.seen.unseenParts(seenKey{httpx.Key(req.Principal.Actor), t, detail.HeadCommit})
	if detail.DiffTooLarge || len(missing) > 0 {
		out = append(out, unseenText(missing, parts, detail.DiffTooLarge))
	}
	if _, objections := gitprovider.Opinions(detail.Reviews); objections == 1 {
		out = append(out, "One reviewer asks for changes.")
	} else if objections > 1 {
		out = append(out, fmt.Sprintf("%d reviewers ask for changes.", objections))
	}
	switch detail.Checks.State {
	case gitprovider.ChecksFailure:
		out = append(out, "Checks fail.")
	case gitprovider.ChecksPending:
		out = append(out, "Checks have not ended.")
	}
	if detail.Mergeable != nil && !*detail.Mergeable {
		out = append(out, "It conflicts with its base, so merging will be refused.")
	}
	return out
}

func unseenText(missing []int, parts int, tooLarge bool) string {
	switch {
	case tooLarge:
		return "The difference is too large to be shown here."
	case parts == 0:
		return "You have not been shown the difference of this commit."
	case len(missing) == 1:
		return fmt.Sprintf("You have not been shown part %d of %d of the difference.", missing[0], parts)
	}
	text := ""
	for i, part := range missing[:min(len(missing), pages.MaxItems)] {
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(part)
	}
	if len(missing) > pages.MaxItems {
		text += " and more"
	}
	return fmt.Sprintf("You have not been shown the parts %s of %d of the difference.", text, parts)
}

// unseen says what a person who wants to merge was not shown; "" where they were shown all, and where there is nothing
// to merge, which the reviewer says better.
func (h *pullPages) unseen(req *httpx.Request, t pullAddress, head string) string {
	missing, parts := h.seen.unseenParts(seenKey{httpx.Key(req.Principal.Actor), t, head})
	if parts > 0 && len(missing) == 0 {
		return ""
	}
	detail, err := h.reviewer.Show(req.Context(), t.provider, gitprovider.RepoRef{Owner: t.owner, Name: t.name}, t.number)
	if err != nil || detail.State != gitprovider.StateOpen || head != "" && head != detail.HeadCommit {
		return ""
	}
	if missing, parts = h.seen.unseenParts(seenKey{httpx.Key(req.Principal.Actor), t, detail.HeadCommit}); parts > 0 &&
		len(missing) == 0 {
		return ""
	}
	return unseenText(missing, parts, detail.DiffTooLarge)
}

// seenKey is the difference of a pull request at a head, as one person sees it.
type seenKey struct {
	who  string
	pull pullAddress
	head string
}

// maxSeen bounds how many differences are remembered. When there are more, all are forgotten, and people look again.
const maxSeen = 10_000

// seenParts remembers which parts of differences people were shown, until the server ends. It is safe for concurrent
// use.
type seenParts struct {
	mu    sync.Mutex
	shown map[seenKey][]bool
}

// markSeen remembers that a part, from 1, was shown.
func (s *seenParts) markSeen(key seenKey, part, parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == nil || len(s.shown) >= maxSeen {
		s.shown = map[seenKey][]bool{}
	}
	if len(s.shown[key]) != parts {
		s.shown[key] = make([]bool, parts)
	}
	s.shown[key][part-1] = true
}

// unseenParts returns the parts that were not shown, and how many there are; 0 if nothing was.
func (s *seenParts) unseenParts(key seenKey) (missing []int, parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, shown := range s.shown[key] {
		if !shown {
			missing = append(missing, i+1)
		}
	}
	return missing, len(s.shown[key])
}
