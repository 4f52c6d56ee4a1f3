package dashboard

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/review"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// Bounds of the page of one pull request.
const (
	maxReviews    = 100
	statusTimeout = 15 * time.Second
)

// pullPages show pull requests one by one, and let people review those that no forge has pages for.
type pullPages struct {
	*renderer
	reader   Reader
	reviewer Reviewer
	attempts records.Attempts
	deploys  func(ctx context.Context, at target) bool // whether it would change something on this machine
}

// target is the pull request that an address names.
type target struct {
	provider, owner, name string
	number                int
}

func targetOf(req *handler.Request) (target, error) {
	t := target{provider: req.PathValue("provider"), owner: req.PathValue("owner"), name: req.PathValue("repo")}
	number, err := strconv.ParseUint(req.PathValue("number"), 10, 31)
	t.number = int(number)
	bad := func(part string) bool { return gitprovider.CheckRepoPart(part) != nil }
	if err != nil || number == 0 || slices.ContainsFunc([]string{t.provider, t.owner, t.name}, bad) {
		return t, fault.New(fault.NotFound, "no pull request can be at this address")
	}
	return t, nil
}

// Path is the address of its page, without the base.
func (t target) Path() string {
	return strings.Join([]string{"/pulls", url.PathEscape(t.provider), url.PathEscape(t.owner), url.PathEscape(t.name), strconv.Itoa(t.number)}, "/")
}

// Repository is its repository with the provider.
func (t target) Repository() record.RepoName {
	return record.RepoName{Provider: t.provider, Owner: t.owner, Name: t.name}
}

// pullPage is one pull request.
type pullPage struct {
	pages.Page
	Target      target
	Status      gitprovider.Status // its reviews are Reviews
	Head        string             // what a review is about
	Prose       pages.Prose
	Mind        []string // what a person should know before merging
	Made        []step   // the proposals that it consists of, oldest first; empty if there is one alone
	Reviews     []gitprovider.Review
	MoreReviews int
	difference
	decision
	Deploys bool // what it would change on this machine is to be shown
}

// step is a proposal that opened a pull request or added to it.
type step struct{ record.Proposal }

// Link is its address, without the base.
func (s step) Link() string { return proposalPath(s.ID) }

// difference is what a pull request changes.
type difference struct {
	Diff     *pages.Diff // nil where the provider shows it
	DiffNote string
}

// decision is what a person may decide, and has.
type decision struct {
	Actions  []option // reviews that this person may give; none elsewhere
	Why      string   // why there are none
	Done     string   // what was just done
	Warnings []string
}

// Mergeable says whether it can be merged, in words.
func (v pullPage) Mergeable() string {
	switch {
	case v.Status.State != gitprovider.StateOpen:
		return "it is not open"
	case v.Status.Mergeable == nil:
		return "the provider is still finding out"
	case *v.Status.Mergeable:
		return "yes"
	}
	return "no: it conflicts with its base"
}

func (h *pullPages) show(req *handler.Request) (handler.Response, error) {
	var q viewParams
	err := handler.DecodeQuery(req, &q)
	var t target
	if err == nil {
		t, err = targetOf(req)
	}
	if err != nil {
		return handler.Response{}, err
	}
	view, err := h.view(req, t, q.View == "split")
	if err != nil {
		return handler.Response{}, err
	}
	view.Done = doneText(q.Done)
	return h.html("pull", view)
}

func (h *pullPages) view(req *handler.Request, t target, split bool) (pullPage, error) {
	ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
	defer cancel()
	status, err := h.reader.StatusAt(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return pullPage{}, err
	}
	view := h.statusView(req, t, status)
	view.Deploys = h.deploys(ctx, t)
	made, err := h.attempts.MadeOf(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return pullPage{}, err
	}
	for _, p := range made {
		if len(made) > 1 {
			view.Made = append(view.Made, step{p})
		}
	}
	if !h.reviewer.Reviews(t.provider) {
		view.Why = "Reviewing and merging happen at the provider."
		if req.Principal.Scopes.Has(access.Review) {
			view.Actions = liftAlone(actionsFor(status.State))
		}
		return view, nil
	}
	detail, err := h.reviewer.Show(ctx, t.provider, gitprovider.RepoRef{Owner: t.owner, Name: t.name}, t.number)
	if err != nil {
		return view, err
	}
	view.Head = detail.HeadCommit // what is shown below, and so what a review is about
	diff := pages.ParseDiff(h.env.Redact(detail.Diff), split)
	switch {
	case detail.DiffTooLarge:
		view.DiffNote = "The difference is too large to show; use git."
	case detail.Diff == "":
		view.DiffNote = "There is no difference to show."
	default:
		view.Diff = &diff
	}
	view.Actions = actionsFor(detail.State)
	if !req.Principal.Scopes.Has(access.Review) {
		view.Actions, view.Why = nil, "Reviewing needs the scope review."
	}
	return view, nil
}

func (h *pullPages) statusView(req *handler.Request, t target, status gitprovider.Status) pullPage {
	view := pullPage{
		Page: h.frame(req, "Pull request #"+strconv.Itoa(status.Number), "/pulls"), Target: t, Status: status, Head: status.HeadCommit,
		Prose:   pages.Markdown(h.env.Redact(prflow.AgentText(status.Body))),
		Reviews: status.Reviews[:min(len(status.Reviews), maxReviews)], MoreReviews: max(0, len(status.Reviews)-maxReviews),
	}
	if note := prflow.RedirectNote(status.Body); note != "" {
		view.Mind = append(view.Mind, note)
	}
	return view
}

// reviewAction is what a person may do to a pull request.
type reviewAction struct{ verb, text, done string }

// reviewActions are all of them. The first one is what the enter key does.
func reviewActions() []reviewAction {
	return []reviewAction{
		{"comment", "Remark", "Your remark is recorded."}, {"approve", "Approve", "You have approved it."},
		{"request-changes", "Request changes", "You have asked for changes."}, {"merge", "Merge", "You have merged it."},
		{"close", "Close without merging", "You have closed it."},
		{review.LiftCooldown, "Lift its cooldown", "Its files may be proposed again at once."},
	}
}

// actionsFor are the reviews that a pull request in the state takes.
func actionsFor(state gitprovider.State) (out []option) {
	for _, a := range reviewActions() {
		lifts := a.verb == review.LiftCooldown
		if lifts && state == gitprovider.StateClosed || !lifts && (state == gitprovider.StateOpen || a.verb == "comment") {
			out = append(out, option{a.verb, a.text, a.verb == "merge"})
		}
	}
	return out
}

// liftAlone are those of the actions that are not the provider's.
func liftAlone(actions []option) []option {
	return slices.DeleteFunc(actions, func(o option) bool { return o.Value != review.LiftCooldown })
}

// doneText says what was just done; "" for nothing.
func doneText(verb string) string {
	for _, a := range reviewActions() {
		if a.verb == verb {
			return a.done
		}
	}
	return ""
}

// reviewOf is a review of the pull request that the address names, whatever is wrong with it, for the record of a refusal.
func reviewOf(req *handler.Request) review.Request {
	number, _ := strconv.Atoi(req.PathValue("number"))
	return review.Request{
		Provider: handler.CleanLine(req.PathValue("provider")), Owner: handler.CleanLine(req.PathValue("owner")), Name: handler.CleanLine(req.PathValue("repo")), Number: number,
		By: req.Caller(),
	}
}

// reviewByForm does what a person has decided. What cannot be understood is recorded here, everything else by the reviewer.
func (h *pullPages) review(req *handler.Request) (handler.Response, error) {
	r, err := h.reviewForm(req)
	if err != nil {
		return handler.Response{}, h.reviewer.Refused(req.Context(), r, err)
	}
	outcome, err := h.reviewer.Do(req.Context(), r)
	if err != nil {
		return handler.Response{}, err
	}
	t := target{r.Provider, r.Owner, r.Name, r.Number}
	if len(outcome.Warnings) == 0 {
		return h.goTo(t.Path() + "?done=" + r.Verb), nil
	}
	view, err := h.view(req, t, false)
	if err != nil {
		return handler.Response{}, errors.Join(fault.New(fault.CodeOf(err), "%s But: %s", doneText(r.Verb), fault.From(err).Message), err)
	}
	view.Done = doneText(r.Verb)
	view.Warnings = outcome.Warnings
	return h.html("pull", view)
}

// reviewForm reads what a person has decided. With an error the request is as far as it was understood.
func (h *pullPages) reviewForm(req *handler.Request) (review.Request, error) {
	r := reviewOf(req)
	t, err := targetOf(req)
	if err != nil {
		return r, err
	}
	r.Provider, r.Owner, r.Name, r.Number = t.provider, t.owner, t.name, t.number
	form, err := handler.ReadForm(req)
	if err != nil {
		return r, err
	}
	if len(form["action"]) != 1 {
		return r, review.UnknownVerb()
	}
	r.Verb = form.Get("action")
	r.Comment = strings.ReplaceAll(form.Get("comment"), "\r\n", "\n")
	r.Head, r.Force = form.Get("head"), form.Get("force") == "yes"
	return r, nil
}

// refused records a review that the guard has refused.
func (h *pullPages) refused(req *handler.Request, why *fault.Error) error {
	return h.reviewer.Refused(req.Context(), reviewOf(req), why)
}
