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
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
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
	attempts views.Attempts
	pulls    views.Pulls
	seen     *seenParts
	deploys  func(ctx context.Context, at pullAddress) bool // whether it would change something on this machine
	policy   func() (policy.Policy, error)
}

// pullParams chooses what the page of a pull request shows.
type pullParams struct {
	View string `json:"view,omitempty" enum:"unified,split,read"`
	Done string `json:"done,omitempty" enum:"approve,request-changes,comment,merge,close,lift-cooldown"`
	Part int    `json:"part,omitempty" minimum:"1" maximum:"100000"`
	On   string `json:"on,omitempty" maxLength:"40"` // mark of the line that is commented on
	// Say and Words are an act and what was written for it, of a person who had to sign in again meanwhile.
	Say   string `json:"say,omitempty" enum:"approve,request-changes,comment,merge,close,lift-cooldown"`
	Words string `json:"words,omitempty" maxLength:"2000"`
}

func (h *pullPages) showPull(req *httpx.Request) (httpx.Response, error) {
	var q pullParams
	err := httpx.DecodeQuery(req, &q)
	var t pullAddress
	if err == nil {
		t, err = targetOf(req)
	}
	if err != nil {
		return httpx.Response{}, err
	}
	view, err := h.loadPage(req, t, q)
	if err != nil {
		return httpx.Response{}, h.asProposed(req.Context(), t, err)
	}
	view.fillWords(q)
	if view.Done = doneText(q.Done); view.Done != "" {
		if view.Next, err = h.nextWaiting(req.Context(), t); err != nil {
			return httpx.Response{}, err
		}
	}
	return h.html("pull", view)
}

// loadPage returns the page for a person. The part of the diff that it shows counts as seen from then on.
func (h *pullPages) loadPage(req *httpx.Request, t pullAddress, q pullParams) (pullPage, error) {
	ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
	defer cancel()
	status, err := h.reader.StatusAt(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return pullPage{}, err
	}
	view := h.statusView(req, t, status)
	view.Deploys = h.deploys(ctx, t)
	if view.Made, err = h.proposalSteps(ctx, t); err != nil {
		return pullPage{}, err
	}
	if view.End, err = h.findPullEnd(ctx, t, status); err != nil {
		return pullPage{}, err
	}
	view.Word = view.standing()
	mayReview := req.Principal.Scopes.Has(access.Review)
	if !h.reviewer.Reviews(t.provider) {
		view.Why = "Reviewing and merging happen at the provider."
		if n := len(view.Made); n > 0 && view.Made[n-1].PrunedAt.IsZero() {
			diff, note := h.showChanges(req, h.reader, view.Made[n-1].Proposal, proposalParams{View: q.View, Part: q.Part},
				t.Path())
			view.Diff, view.DiffNote = &diff, note
		}
		h.pullFacts(&view)
		if mayReview {
			view.Acts = slices.DeleteFunc(view.acts(status.State, nil),
				func(a actForm) bool { return a.Verb != review.LiftCooldown })
		}
		view.fillSteps(status.Reviews)
		return view, nil
	}
	detail, err := h.reviewer.Show(ctx, t.provider, gitprovider.RepoRef{Owner: t.owner, Name: t.name}, t.number)
	if err != nil {
		return view, err
	}
	view.Head = detail.HeadCommit // what is shown below, and so what a review is about
	view.fillSteps(detail.Reviews)
	if err := h.showDifference(ctx, req, &view, detail, q); err != nil {
		return view, err
	}
	h.pullFacts(&view)
	if !mayReview {
		view.Why = "You may look. Reviewing needs the scope review: ask somebody who operates this server."
		return view, nil
	}
	view.Acts = view.acts(detail.State, h.obstacles(req, t, detail))
	return view, nil
}

// asProposed returns an error of a forge with the page that shows what was proposed to it, which needs no forge.
func (h *pullPages) asProposed(ctx context.Context, t pullAddress, err error) error {
	made, none := h.attempts.MadeOf(ctx, t.provider, t.owner, t.name, t.number)
	if none != nil || len(made) == 0 {
		return err
	}
	return &httpx.RecordedError{Err: err, Path: proposalPath(made[len(made)-1].ID) + "?as=proposed"}
}

// nextWaiting returns another pull request that waits for a person, the oldest; nil for none.
func (h *pullPages) nextWaiting(ctx context.Context, but pullAddress) (*waitItem, error) {
	open, err := h.pulls.OpenPulls(ctx, maxOpenPulls)
	for _, p := range open {
		if item, waits := waitOf(p); waits && item.Link != but.Path() {
			return &item, nil
		}
	}
	return nil, err
}

// proposalSteps returns the proposals that a pull request consists of, with the rows of the audit of the first ones.
func (h *pullPages) proposalSteps(ctx context.Context, t pullAddress) (steps []pullStep, err error) {
	made, err := h.attempts.MadeOf(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return nil, err
	}
	for i, p := range made {
		one := pullStep{Proposal: p}
		if i < maxRowsAsked {
			rows, err := h.attempts.AttemptsOf(ctx, p.ID)
			if err != nil {
				return nil, err
			}
			if len(rows) > 0 {
				one.Row = attempt{RecordedAttempt: rows[0]}
			}
		}
		steps = append(steps, one)
	}
	return steps, nil
}

// findPullEnd returns how a pull request ended: from the record, else from its provider.
func (h *pullPages) findPullEnd(ctx context.Context, t pullAddress, status gitprovider.Status) (*pullEnd, error) {
	key := record.PullKey{Provider: t.provider, Owner: t.owner, Repo: t.name, Number: t.number}
	found, err := h.pulls.PullRecords(ctx, []record.PullKey{key})
	if err != nil {
		return nil, err
	}
	if status.State == gitprovider.StateOpen {
		return &pullEnd{ClosesAt: closesAt(found[key], h.policy)}, nil
	}
	out := &pullEnd{At: status.ClosedAt, By: status.MergedBy}
	if r, known := found[key]; known && !r.Open() {
		out.By, out.Expired = cmp.Or(r.EndedBy, out.By), !r.ExpiredAt.IsZero()
		if out.At.IsZero() {
			out.At = r.EndedAt
		}
	}
	by, when, err := h.pulls.CooldownLifted(ctx, key)
	if err == nil && !when.Before(out.At) { // else it was closed again since
		out.LiftedBy, out.LiftedAt = by, when
	}
	return out, err
}

func (h *pullPages) statusView(req *httpx.Request, t pullAddress, status gitprovider.Status) pullPage {
	view := pullPage{
		Page:   h.frame(req, cmp.Or(h.env.Line(status.Title), "Change")+" #"+strconv.Itoa(status.Number), changesPath),
		Target: t, Status: status, Head: status.HeadCommit,
		Prose:    pages.Markdown(h.env.Redact(prflow.AgentText(status.Body))),
		opinions: opinions{newestReviews(status.Reviews), max(0, len(status.Reviews)-maxReviews)},
	}
	if note := prflow.RedirectNote(status.Body); note != "" {
		view.Mind = append(view.Mind, note)
	}
	return view
}

// pullAddress is the pull request that an address names.
type pullAddress struct {
	provider, owner, name string
	number                int
}

func targetOf(req *httpx.Request) (pullAddress, error) {
	t := pullAddress{provider: req.PathValue("provider"), owner: req.PathValue("owner"), name: req.PathValue("repo")}
	number, err := strconv.ParseUint(req.PathValue("number"), 10, 31)
	t.number = int(number)
	bad := func(part string) bool { return gitprovider.CheckRepoPart(part) != nil }
	if err != nil || number == 0 || slices.ContainsFunc([]string{t.provider, t.owner, t.name}, bad) {
		return t, fault.New(fault.NotFound, "no pull request can be at this address")
	}
	return t, nil
}

// Path returns the address of its page, without the base.
func (t pullAddress) Path() string {
	return strings.Join([]string{"/pulls", url.PathEscape(t.provider), url.PathEscape(t.owner), url.PathEscape(t.name),
		strconv.Itoa(t.number)}, "/")
}

// OwnerName returns its repository, as owner/name.
func (t pullAddress) OwnerName() string { return t.owner + "/" + t.name }

// Provider returns its provider.
func (t pullAddress) Provider() string { return t.provider }

// Repository returns its repository with the provider.
func (t pullAddress) Repository() record.RepoName {
	return record.RepoName{Provider: t.provider, Owner: t.owner, Name: t.name}
}

// pullPage is one pull request.
type pullPage struct {
	pages.Page
	Target pullAddress
	Status gitprovider.Status // its reviews are Reviews
	Head   string             // what a review is about
	Prose  pages.Prose
	Mind   []string // what a person should know before merging
	Word   views.Word
	Gates  gates
	Made   []pullStep // the proposals that it consists of, oldest first
	End    *pullEnd   // how it ended, or will; nil where that is not known
	Way    []wayStep
	Would  *factStrip // nil where no proposal of ours is known
	opinions
	difference
	decision
	Deploys bool // what it would change on this machine is to be shown
}

// pullStep is a proposal that opened a pull request or added to it.
type pullStep struct {
	record.Proposal
	Row attempt // of the audit; zero if it is not known
}

// Link returns the address of the proposal, without the base.
func (s pullStep) Link() string { return proposalPath(s.ID) }

// SessionLink returns the address of the agent's session, without the base.
func (s pullStep) SessionLink() string { return sessionPath(s.Session) }

// pullEnd says how a pull request ended, as far as it is recorded.
type pullEnd struct {
	At time.Time
	By string // "" if not known

	ClosesAt time.Time // of an open one: when it is closed unless somebody acts; zero for never
	Expired  bool      // we closed it because nobody had acted

	LiftedBy string // who has lifted its cooldown; "" if it was not lifted
	LiftedAt time.Time
}

// opinions holds people's reviews of a pull request.
type opinions struct {
	Reviews     []gitprovider.Review
	MoreReviews int
}

// newestReviews returns at most maxReviews of them, which stand oldest first: the newest say what is asked for now.
func newestReviews(reviews []gitprovider.Review) []gitprovider.Review {
	return reviews[max(0, len(reviews)-maxReviews):]
}

// difference is the diff of a pull request.
type difference struct {
	Diff     *pages.Diff // nil where the provider shows it
	DiffNote string
}

// Mergeable says whether it can be merged, in words.
func (v pullPage) Mergeable() string {
	switch {
	case v.Status.State != gitprovider.StateOpen:
		return "is not open"
	case v.Status.Mergeable == nil:
		return "the forge is still finding out whether it can be"
	case !*v.Status.Mergeable:
		return "conflicts with its base"
	case v.Word == views.NextActor(record.StandingReady):
		return "can be done now"
	}
	return "can be done once it is approved"
}

// fillSteps fills in the steps of the change so far, and those to come.
func (v *pullPage) fillSteps(reviews []gitprovider.Review) {
	for _, s := range v.Made {
		if s.Row.Seq > 0 {
			v.Way = append(v.Way, proposedSteps(s.Row)...)
			v.Gates = gatesOf(s.Row.Verdicts)
		}
	}
	for _, r := range newestReviews(reviews) {
		v.Way = append(v.Way, reviewStep(r))
	}
	v.Way = inOrder(v.Way)
	if v.Status.State == gitprovider.StateOpen {
		v.Way = append(v.Way, wayStep{Icon: v.Word.Icon, Tone: v.Word.Tone, Before: v.Word.Text,
			Sub: "commit " + pages.Short(v.Head)},
			wayStep{Icon: "git-merge", Tone: views.Mute, Before: "Merge", Sub: v.Mergeable(), Todo: true})
		if v.End != nil && !v.End.ClosesAt.IsZero() {
			v.Way = append(v.Way, wayStep{Icon: "clock", Tone: views.Mute, Before: "Close", Todo: true,
				Sub: "on " + v.End.ClosesAt.UTC().Format(time.DateOnly) + ", unless somebody acts"})
		}
		return
	}
	end := wayStep{Icon: v.Word.Icon, Tone: v.Word.Tone, Before: v.Word.Text}
	if v.End != nil {
		end.At = v.End.At
		if end.Who = record.CallerName(v.End.By); end.Who != "" {
			action := record.ActionPullClosed
			if v.Status.State == gitprovider.StateMerged {
				action = record.ActionPullMerged
			}
			end.Before, end.After = "", " "+record.StepOf(action)
		}
		if v.End.Expired {
			end.Before, end.Sub = "Claude Ops "+record.StepOf(record.ActionPullExpired), "nobody had acted on it"
		}
	}
	v.Way = append(v.Way, end)
	if v.End != nil && v.End.LiftedBy != "" {
		v.Way = append(
			v.Way,
			wayStep{Icon: "clock", Tone: views.Done, Who: record.CallerName(v.End.LiftedBy),
				After: " " + record.StepOf("review.lift-cooldown"), At: v.End.LiftedAt},
		)
	}
}

// acts returns a person's possible actions on it. A cooldown is lifted once.
func (v *pullPage) acts(state gitprovider.State, obstacles []string) []actForm {
	acts := actsFor(state, v.Word, obstacles)
	if v.End == nil || v.End.LiftedBy == "" && !v.End.Expired {
		return acts
	}
	return slices.DeleteFunc(acts, func(a actForm) bool { return a.Verb == review.LiftCooldown })
}

// Proposer returns the name of its first proposer.
func (v pullPage) Proposer() string {
	if len(v.Made) == 0 {
		return ""
	}
	first := v.Made[0].Proposal
	return record.Attempt{Actor: first.Actor, Door: first.Door, Caller: first.Caller, Session: first.Session}.
		Act(record.Context{}).Who
}

// Revised returns the time of its last revision; zero for never.
func (v pullPage) Revised() time.Time {
	if n := len(v.Made); n > 1 {
		return v.Made[n-1].CreatedAt
	}
	return time.Time{}
}

// standing describes the state of a pull request, from its provider's present answer.
func (v pullPage) standing() views.Word {
	r := record.PullRecord{State: v.Status.State, Checks: v.Status.Checks.State, RevisedAt: v.Revised()}
	r.Approvals, r.ChangesRequested = gitprovider.Opinions(v.Status.Reviews)
	for _, said := range v.Status.Reviews {
		if said.State == gitprovider.ReviewChangesRequested && said.SubmittedAt.After(r.AskedAt) {
			r.AskedAt = said.SubmittedAt
		}
	}
	return views.Pull(r)
}
