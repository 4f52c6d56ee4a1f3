package dashboard

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// Bounds of the page of one pull request.
const (
	maxReviews    = 100
	maxRowsAsked  = 5 // proposals whose rows of the audit are looked for
	statusTimeout = 15 * time.Second
)

// pullPages show pull requests one by one, and let people review those that no forge has pages for.
type pullPages struct {
	*renderer
	reader   Reader
	reviewer Reviewer
	attempts records.Attempts
	pulls    records.Pulls
	seen     *seenParts
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
	Target target
	Status gitprovider.Status // its reviews are Reviews
	Head   string             // what a review is about
	Prose  pages.Prose
	Mind   []string // what a person should know before merging
	Made   []step   // the proposals that it consists of, oldest first
	End    *pullEnd // nil while it is open, and where nobody knows
	opinions
	difference
	decision
	Deploys bool // what it would change on this machine is to be shown
}

// step is a proposal that opened a pull request or added to it.
type step struct {
	record.Proposal
	Seq int64 // of its row of the audit; 0 if it is not known
}

// Link is the address of the proposal, without the base.
func (s step) Link() string { return proposalPath(s.ID) }

// SessionLink is the address of the agent's session, without the base.
func (s step) SessionLink() string { return sessionPath(s.Session) }

// RowLink is the address of the row of the audit, without the base.
func (s step) RowLink() string { return auditRowPath(s.Seq) }

// pullEnd is how a pull request ended, as far as it is recorded.
type pullEnd struct {
	At time.Time
	By string // "" if nobody says
}

// opinions are what people said of a pull request.
type opinions struct {
	Reviews     []gitprovider.Review
	MoreReviews int
}

// difference is what a pull request changes.
type difference struct {
	Diff     *pages.Diff // nil where the provider shows it
	DiffNote string
}

// decision is what a person may decide, and has.
type decision struct {
	Actions  []option // reviews that this person may give; none elsewhere
	Merge    *mergeForm
	Why      string // why there are none
	Done     string // what was just done
	Warnings []string
	Form     reviewForm
}

// reviewForm is the form of a review as it was sent, if it comes back.
type reviewForm struct {
	Comment string
	Failed  string // why it was refused; "" for a form that nobody has sent
	Code    fault.Code
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

// pullParams chooses what the page of a pull request shows.
type pullParams struct {
	View string `json:"view,omitempty" enum:"unified,split"`
	Done string `json:"done,omitempty" enum:"approve,request-changes,comment,merge,close,lift-cooldown"`
	Part int    `json:"part,omitempty" minimum:"1" maximum:"100000"`
	On   string `json:"on,omitempty" maxLength:"40"` // mark of the line that is commented on
}

func (h *pullPages) show(req *handler.Request) (handler.Response, error) {
	var q pullParams
	err := handler.DecodeQuery(req, &q)
	var t target
	if err == nil {
		t, err = targetOf(req)
	}
	if err != nil {
		return handler.Response{}, err
	}
	view, err := h.view(req, t, q)
	if err != nil {
		return handler.Response{}, err
	}
	view.Done = doneText(q.Done)
	return h.html("pull", view)
}

// view is what a person sees. What the page shows of the difference counts as seen from then on.
func (h *pullPages) view(req *handler.Request, t target, q pullParams) (pullPage, error) {
	ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
	defer cancel()
	status, err := h.reader.StatusAt(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return pullPage{}, err
	}
	view := h.statusView(req, t, status)
	view.Deploys = h.deploys(ctx, t)
	if view.Made, err = h.made(ctx, t); err != nil {
		return pullPage{}, err
	}
	if view.End, err = h.end(ctx, t, status); err != nil {
		return pullPage{}, err
	}
	mayReview := req.Principal.Scopes.Has(access.Review)
	if !h.reviewer.Reviews(t.provider) {
		view.Why = "Reviewing and merging happen at the provider."
		if mayReview {
			view.Actions = liftAlone(actionsFor(status.State))
		}
		return view, nil
	}
	detail, err := h.reviewer.Show(ctx, t.provider, gitprovider.RepoRef{Owner: t.owner, Name: t.name}, t.number)
	if err != nil {
		return view, err
	}
	view.Head = detail.HeadCommit // what is shown below, and so what a review is about
	if err := h.showDifference(ctx, req, &view, detail, q); err != nil {
		return view, err
	}
	if !mayReview {
		view.Why = "Reviewing needs the scope review."
		return view, nil
	}
	view.Actions = actionsFor(detail.State)
	if detail.State == gitprovider.StateOpen {
		view.Merge = &mergeForm{Obstacles: h.obstacles(req, t, detail)}
	}
	return view, nil
}

// made are the proposals that a pull request consists of, with the rows of the audit of the first ones.
func (h *pullPages) made(ctx context.Context, t target) (steps []step, err error) {
	made, err := h.attempts.MadeOf(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return nil, err
	}
	for i, p := range made {
		one := step{Proposal: p}
		if i < maxRowsAsked {
			rows, err := h.attempts.AttemptsOf(ctx, p.ID)
			if err != nil {
				return nil, err
			}
			if len(rows) > 0 {
				one.Seq = rows[0].Seq
			}
		}
		steps = append(steps, one)
	}
	return steps, nil
}

// end is how a pull request ended: as it is recorded, else as its provider says.
func (h *pullPages) end(ctx context.Context, t target, status gitprovider.Status) (*pullEnd, error) {
	if status.State == gitprovider.StateOpen {
		return nil, nil
	}
	key := record.PullKey{Provider: t.provider, Owner: t.owner, Repo: t.name, Number: t.number}
	found, err := h.pulls.PullRecords(ctx, []record.PullKey{key})
	if err != nil {
		return nil, err
	}
	out := &pullEnd{At: status.ClosedAt, By: status.MergedBy}
	if r, known := found[key]; known && !r.Open() {
		out.By = cmp.Or(r.EndedBy, out.By)
		if out.At.IsZero() {
			out.At = r.EndedAt
		}
	}
	return out, nil
}

func (h *pullPages) statusView(req *handler.Request, t target, status gitprovider.Status) pullPage {
	view := pullPage{
		Page: h.frame(req, "Pull request #"+strconv.Itoa(status.Number), changesPath), Target: t, Status: status, Head: status.HeadCommit,
		Prose:    pages.Markdown(h.env.Redact(prflow.AgentText(status.Body))),
		opinions: opinions{status.Reviews[:min(len(status.Reviews), maxReviews)], max(0, len(status.Reviews)-maxReviews)},
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
		{"comment", "Comment", "Your comment is recorded."}, {"approve", "Approve", "You have approved it."},
		{"request-changes", "Request changes", "You have asked for changes."}, {mergeVerb, "Merge", "You have merged it."},
		{"close", "Close without merging", "You have closed it."},
		{review.LiftCooldown, "Lift its cooldown", "Its files may be proposed again at once."},
	}
}

// actionsFor are the reviews that a pull request in the state takes. To merge has a form of its own.
func actionsFor(state gitprovider.State) (out []option) {
	for _, a := range reviewActions() {
		if a.verb == mergeVerb {
			continue
		}
		lifts := a.verb == review.LiftCooldown
		if lifts && state == gitprovider.StateClosed || !lifts && (state == gitprovider.StateOpen || a.verb == "comment") {
			out = append(out, option{a.verb, a.text, a.verb == "comment"})
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
