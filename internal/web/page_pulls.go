package web

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
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Bounds of the page of one pull request.
const (
	maxReviews    = 100
	statusTimeout = 15 * time.Second
)

// target is the pull request that an address names.
type target struct {
	provider, owner, name string
	number                int
}

func (t target) path() string {
	return strings.Join([]string{"/pulls", url.PathEscape(t.provider), url.PathEscape(t.owner), url.PathEscape(t.name), itoa(t.number)}, "/")
}

func targetOf(c *call) (target, error) {
	t := target{provider: c.PathValue("provider"), owner: c.PathValue("owner"), name: c.PathValue("repo")}
	number, err := strconv.ParseUint(c.PathValue("number"), 10, 31)
	t.number = int(number)
	bad := func(part string) bool { return gitprovider.CheckRepoPart(part) != nil }
	if err != nil || number == 0 || slices.ContainsFunc([]string{t.provider, t.owner, t.name}, bad) {
		return t, fault.New(fault.NotFound, "no pull request can be at this address")
	}
	return t, nil
}

func (s *Server) pullPage(c *call) (answer, error) {
	var q viewParams
	err := decodeQuery(c, &q)
	var t target
	if err == nil {
		t, err = targetOf(c)
	}
	if err != nil {
		return answer{}, err
	}
	view, err := s.pullView(c, t, q.View == "split")
	if err != nil {
		return answer{}, err
	}
	view.Done = doneWord(q.Done)
	return s.html("pull", view)
}

func (s *Server) pullView(c *call, t target, split bool) (pages.PullPage, error) {
	ctx, cancel := context.WithTimeout(c.Context(), statusTimeout)
	defer cancel()
	status, err := s.Reader.StatusAt(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return pages.PullPage{}, err
	}
	view := s.statusView(c, t, status)
	if !s.Reviewer.Reviews(t.provider) {
		view.Why = "Reviewing and merging happen at the provider."
		return view, nil
	}
	detail, err := s.Reviewer.Show(ctx, t.provider, gitprovider.RepoRef{Owner: t.owner, Name: t.name}, t.number)
	if err != nil {
		return view, err
	}
	view.Head = detail.HeadCommit // what is shown below, and so what a review is about
	diff := pages.ParseDiff(s.Redact(detail.Diff), split)
	switch {
	case detail.DiffTooLarge:
		view.DiffNote = "The difference is too large to show; use git."
	case detail.Diff == "":
		view.DiffNote = "There is no difference to show."
	default:
		view.Diff = &diff
	}
	view.Actions = actionsFor(detail.State)
	if !c.who.Scopes.Has(access.Review) {
		view.Actions, view.Why = nil, "Reviewing needs the scope review."
	}
	return view, nil
}

func (s *Server) statusView(c *call, t target, status gitprovider.Status) pages.PullPage {
	view := pages.PullPage{
		Page: s.frame(c, "Pull request #"+itoa(status.Number), "/pulls"),
		Pull: pages.Pull{Number: status.Number, URL: pages.WebAddress(status.URL)},
		Repo: s.words(record.RepoName{Provider: t.provider, Owner: t.owner, Name: t.name}.String()), Name: s.words(status.Title),
		Path: t.path(), State: string(status.State), Mergeable: mergeableOf(status), Branch: s.words(status.Branch),
		BaseBranch: s.words(status.Base), Head: status.HeadCommit, At: pages.WhenOf(status.CreatedAt, s.Now()),
		Closed: pages.WhenOf(status.ClosedAt, s.Now()), Body: pages.Markdown(s.Redact(prflow.AgentText(status.Body))),
		Checks: string(status.Checks.State), Failing: pages.ListOf(status.Checks.Failing, s.words),
		Unified: t.path() + "#files", SideBySide: t.path() + "?view=split#files",
		MoreReviews: max(0, len(status.Reviews)-maxReviews),
	}
	if note := prflow.RedirectNote(status.Body); note != "" {
		view.Mind = append(view.Mind, s.text(note, maxMessage))
	}
	for _, r := range status.Reviews[:min(len(status.Reviews), maxReviews)] {
		view.Reviews = append(view.Reviews, pages.Review{
			Author: s.words(r.Author), State: string(r.State), Body: s.text(r.Body, maxMessage),
			At: pages.WhenOf(r.SubmittedAt, s.Now()),
		})
	}
	return view
}

// actionsFor are the reviews that a pull request in the state takes.
func actionsFor(state gitprovider.State) []pages.Option {
	if state != gitprovider.StateOpen {
		return []pages.Option{{Value: "comment", Text: "Remark"}}
	}
	return []pages.Option{ // the first one is what the enter key does
		{Value: "comment", Text: "Remark"}, {Value: "approve", Text: "Approve"}, {Value: "request-changes", Text: "Request changes"},
		{Value: "merge", Text: "Merge", Chosen: true}, {Value: "close", Text: "Close without merging"},
	}
}

func doneWord(action string) string {
	switch action {
	case "approve":
		return "You have approved it."
	case "request-changes":
		return "You have asked for changes."
	case "comment":
		return "Your remark is recorded."
	case "merge":
		return "You have merged it."
	case "close":
		return "You have closed it."
	}
	return ""
}

// reviewOf is a review of the pull request that the address names, whatever is wrong with it, for the record of a refusal.
func reviewOf(c *call) review.Request {
	number, _ := strconv.Atoi(c.PathValue("number"))
	return review.Request{
		Provider: line(c.PathValue("provider")), Owner: line(c.PathValue("owner")), Name: line(c.PathValue("repo")), Number: number,
		By: caller(c),
	}
}

// reviewByForm does what a person has decided. What cannot be understood is recorded here, everything else by the reviewer.
func (s *Server) reviewByForm(c *call) (answer, error) {
	r, err := s.reviewForm(c)
	if err != nil {
		return answer{}, s.Reviewer.Refused(c.Context(), r, err)
	}
	outcome, err := s.Reviewer.Do(c.Context(), r)
	if err != nil {
		return answer{}, err
	}
	t := target{r.Provider, r.Owner, r.Name, r.Number}
	if len(outcome.Warnings) == 0 {
		return s.goTo(t.path() + "?done=" + r.Verb), nil
	}
	view, err := s.pullView(c, t, false)
	if err != nil {
		return answer{}, errors.Join(fault.New(fault.CodeOf(err), "%s But: %s", doneWord(r.Verb), fault.From(err).Message), err)
	}
	view.Done = doneWord(r.Verb)
	for _, w := range outcome.Warnings {
		view.Warnings = append(view.Warnings, s.text(w, maxMessage))
	}
	return s.html("pull", view)
}

// reviewForm reads what a person has decided. With an error the request is as far as it was understood.
func (s *Server) reviewForm(c *call) (review.Request, error) {
	r := reviewOf(c)
	t, err := targetOf(c)
	if err != nil {
		return r, err
	}
	r.Provider, r.Owner, r.Name, r.Number = t.provider, t.owner, t.name, t.number
	form, err := readForm(c)
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
