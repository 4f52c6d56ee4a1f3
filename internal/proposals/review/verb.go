package review

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// LiftCooldown is the verb that ends the cooldown of a closed pull request. It is a decision of our own, not of the
// host, so that it holds for the pull requests of every provider.
const LiftCooldown = "lift-cooldown"

// Verb is one thing that a person can do to a pull request.
type Verb struct {
	Name  string // as commands and forms have it
	Short string // what it does, for help
	Done  string // what was done, to go before "#7"
	Force bool   // uses Request.Force
	Lines bool   // uses Request.Comments
	// Second says that it takes somebody else than who started what the pull request came of, if the policy wants that.
	Second bool

	Action string            // as the audit has it
	event  record.Event      // the notification for people; "" for none
	state  gitprovider.State // of the pull request after an event
	act    verbAct           // nil for LiftCooldown
}

type verbAct func(context.Context, Host, gitprovider.RepoRef, int, local.MergeNote) (Outcome, error)

// Verbs lists them.
func Verbs() []Verb {
	return []Verb{
		{Name: "approve", Short: "Approve a pull request", Done: "approved", Lines: true, Second: true,
			Action: "review.approve", act: plain(Host.Approve)},
		{
			Name: "request-changes", Short: "Ask for changes; needs --comment or --line", Done: "asked for changes to",
			Lines: true, Action: "review.request-changes", act: plain(Host.RequestChanges),
		},
		{
			Name: "comment", Short: "Comment on a pull request, or on lines of its files", Done: "commented on", Lines: true,
			Action: "review.comment",
			act:    plain(Host.Comment),
		},
		{
			Name: "merge", Short: "Merge a pull request", Done: "merged", Force: true, Second: true,
			Action: record.ActionReviewMerge, act: merge,
			event: record.EventMerged, state: gitprovider.StateMerged,
		},
		{
			Name: "close", Short: "Close a pull request without merging it", Done: "closed", Action: "review.close",
			act: plain(Host.Close), event: record.EventClosed, state: gitprovider.StateClosed,
		},
		{
			Name: LiftCooldown, Short: "Let the files of a closed pull request be proposed again at once",
			Done:   "lifted the cooldown of",
			Action: "review.lift-cooldown",
		},
	}
}

// UnknownVerb returns the refusal of a decision that is none of Verbs.
func UnknownVerb() *fault.Error {
	var names []string
	for _, verb := range Verbs() {
		names = append(names, verb.Name)
	}
	last := len(names) - 1
	return fault.New(fault.InvalidArgument, "say what to do with the pull request, once: %s or %s",
		strings.Join(names[:last], ", "), names[last])
}

// NeedsOf returns the operator's rules that a verb must meet; pass "" if the verb is not known yet. A person's decision
// about a pull request is not a proposal, so a server that is read-only for agents lets people review.
func NeedsOf(verb string) operation.Needs {
	needs := operation.Needs{For: operation.People, Scope: access.Review, Policy: true, Listed: true}
	if verb == LiftCooldown { // writes nothing to a repository
		needs.Dry = operation.DryDone
	}
	return needs
}

func verbNamed(name string) (Verb, bool) {
	for _, verb := range Verbs() {
		if verb.Name == name {
			return verb, true
		}
	}
	return Verb{}, false
}

// plain adapts what needs no more than a note.
func plain(do func(Host, context.Context, gitprovider.RepoRef, int, local.Note) error) verbAct {
	return func(ctx context.Context, h Host, ref gitprovider.RepoRef, number int, note local.MergeNote) (Outcome, error) {
		return Outcome{}, do(h, ctx, ref, number, note.Note)
	}
}

func merge(ctx context.Context, h Host, ref gitprovider.RepoRef, number int, note local.MergeNote) (Outcome, error) {
	merged, err := h.Merge(ctx, ref, number, note)
	return Outcome{Commit: merged.Commit, Warnings: merged.Warnings}, err
}
