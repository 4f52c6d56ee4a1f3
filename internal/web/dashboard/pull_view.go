package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/words"
)

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
	return strings.Join([]string{"/pulls", url.PathEscape(t.provider), url.PathEscape(t.owner), url.PathEscape(t.name),
		strconv.Itoa(t.number)}, "/")
}

// OwnerName is its repository, as owner/name.
func (t target) OwnerName() string { return t.owner + "/" + t.name }

// Provider is where it is.
func (t target) Provider() string { return t.provider }

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
	Word   words.Word
	Gates  gates
	Made   []step   // the proposals that it consists of, oldest first
	End    *pullEnd // nil while it is open, and where nobody knows
	Way    []wayStep
	opinions
	difference
	decision
	Deploys bool // what it would change on this machine is to be shown
}

// step is a proposal that opened a pull request or added to it.
type step struct {
	record.Proposal
	Row attempt // of the audit; zero if it is not known
}

// Link is the address of the proposal, without the base.
func (s step) Link() string { return proposalPath(s.ID) }

// SessionLink is the address of the agent's session, without the base.
func (s step) SessionLink() string { return sessionPath(s.Session) }

// pullEnd is how a pull request ended, as far as it is recorded.
type pullEnd struct {
	At time.Time
	By string // "" if nobody says

	LiftedBy string // who has lifted its cooldown; "" for nobody
	LiftedAt time.Time
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

// Mergeable says whether it can be merged, in words.
func (v pullPage) Mergeable() string {
	switch {
	case v.Status.State != gitprovider.StateOpen:
		return "is not open"
	case v.Status.Mergeable == nil:
		return "the forge is still finding out whether it can be"
	case !*v.Status.Mergeable:
		return "conflicts with its base"
	case v.Word == words.Standing(record.StandingReady):
		return "can be done now"
	}
	return "can be done once it is approved"
}

// tell fills in the way of the change so far, and what is to come.
func (v *pullPage) tell(reviews []gitprovider.Review) {
	for _, s := range v.Made {
		if s.Row.Seq > 0 {
			v.Way = append(v.Way, proposedSteps(s.Row)...)
			v.Gates = gatesOf(s.Row.Verdicts)
		}
	}
	for _, r := range reviews[:min(len(reviews), maxReviews)] {
		v.Way = append(v.Way, reviewStep(r))
	}
	v.Way = inOrder(v.Way)
	if v.Status.State == gitprovider.StateOpen {
		v.Way = append(v.Way, wayStep{Icon: v.Word.Icon, Tone: v.Word.Tone, Before: v.Word.Text,
			Sub: "commit " + pages.Short(v.Head)},
			wayStep{Icon: "git-merge", Tone: words.Mute, Before: "Merge", Sub: v.Mergeable(), Todo: true})
		return
	}
	end := wayStep{Icon: v.Word.Icon, Tone: v.Word.Tone, Before: v.Word.Text}
	if v.End != nil {
		end.At = v.End.At
		if end.Who = record.PersonName(v.End.By); end.Who != "" {
			action := record.ActionPullClosed
			if v.Status.State == gitprovider.StateMerged {
				action = record.ActionPullMerged
			}
			end.Before, end.After = "", " "+record.StepOf(action)
		}
	}
	v.Way = append(v.Way, end)
	if v.End != nil && v.End.LiftedBy != "" {
		v.Way = append(
			v.Way,
			wayStep{Icon: "clock", Tone: words.Done, Who: record.PersonName(v.End.LiftedBy),
				After: " " + record.StepOf("review.lift-cooldown"), At: v.End.LiftedAt},
		)
	}
}

// acts are what a person may do to it. A cooldown is lifted once.
func (v *pullPage) acts(state gitprovider.State, obstacles []string) []actForm {
	acts := actsFor(state, v.Word, obstacles)
	if v.End == nil || v.End.LiftedBy == "" {
		return acts
	}
	return slices.DeleteFunc(acts, func(a actForm) bool { return a.Verb == review.LiftCooldown })
}

// Proposer is who proposed it first.
func (v pullPage) Proposer() string {
	if len(v.Made) == 0 {
		return ""
	}
	first := v.Made[0].Proposal
	return record.Attempt{Door: first.Door, Caller: first.Caller, Session: first.Session}.Act(record.Context{}).Who
}

// Revised is when it was revised last; zero for never.
func (v pullPage) Revised() time.Time {
	if n := len(v.Made); n > 1 {
		return v.Made[n-1].CreatedAt
	}
	return time.Time{}
}

// standing is how a pull request stands, from what its provider says now.
func (v pullPage) standing() words.Word {
	r := record.PullRecord{State: v.Status.State, Checks: v.Status.Checks.State, RevisedAt: v.Revised()}
	r.Approvals, r.ChangesRequested = gitprovider.Opinions(v.Status.Reviews)
	for _, said := range v.Status.Reviews {
		if said.State == gitprovider.ReviewChangesRequested && said.SubmittedAt.After(r.AskedAt) {
			r.AskedAt = said.SubmittedAt
		}
	}
	return words.Pull(r)
}
