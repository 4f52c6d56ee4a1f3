package review

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/base/facts"
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
	// Passes says that it lets the change pass: the policy may want another person for it than the one who started what
	// the pull request came of, and that facts are confirmed.
	Passes bool

	Action string            // as the audit has it
	event  record.Event      // the notification for people; "" for none
	state  gitprovider.State // of the pull request after an event
	act    verbAct           // nil for LiftCooldown
}

type verbAct func(context.Context, Host, gitprovider.RepoRef, int, local.MergeNote) (Outcome, error)

// Verbs lists them.
func Verbs() []Verb {
	return []Verb{
		{Name: "approve", Short: "Approve a pull request", Done: "approved", Lines: true, Passes: true,
			Action: "review.approve", act: noteVerb(Host.Approve)},
		{
			Name: "request-changes", Short: "Ask for changes; needs --comment or --line", Done: "asked for changes to",
			Lines: true, Action: "review.request-changes", act: noteVerb(Host.RequestChanges),
		},
		{
			Name: "comment", Short: "Comment on a pull request, or on lines of its files", Done: "commented on", Lines: true,
			Action: "review.comment",
			act:    noteVerb(Host.Comment),
		},
		{
			Name: "merge", Short: "Merge a pull request", Done: "merged", Force: true, Passes: true,
			Action: record.ActionReviewMerge, act: mergePull,
			event: record.EventMerged, state: gitprovider.StateMerged,
		},
		{
			Name: "close", Short: "Close a pull request without merging it", Done: "closed", Action: "review.close",
			act: noteVerb(Host.Close), event: record.EventClosed, state: gitprovider.StateClosed,
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

// noteVerb adapts what needs no more than a note.
func noteVerb(do func(Host, context.Context, gitprovider.RepoRef, int, local.Note) error) verbAct {
	return func(ctx context.Context, h Host, ref gitprovider.RepoRef, number int, note local.MergeNote) (Outcome, error) {
		return Outcome{}, do(h, ctx, ref, number, note.Note)
	}
}

func mergePull(ctx context.Context, h Host, ref gitprovider.RepoRef, number int, note local.MergeNote) (Outcome,
	error) {
	merged, err := h.Merge(ctx, ref, number, note)
	return Outcome{Commit: merged.Commit, Warnings: merged.Warnings}, err
}

// LiftRequest names a closed pull request of ours.
type LiftRequest struct {
	Number    int    `json:"number" required:"true" minimum:"1" path:"number" doc:"Pull request number"`
	RepoOwner string `json:"repo_owner" required:"true" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" doc:"Repository name"`
	Provider  string `json:"provider,omitempty" doc:"Where the repository is, if several providers are enabled"`
	Comment   string `json:"comment,omitempty" maxLength:"500" doc:"Why; the audit has it"`
}

// OpinionRequest is a person's review of a pull request.
type OpinionRequest struct {
	Number    int           `json:"number" required:"true" minimum:"1" path:"number" doc:"Pull request number"`
	RepoOwner string        `json:"repo_owner" required:"true" example:"joe" doc:"Repository owner"`
	RepoName  string        `json:"repo_name" required:"true" example:"home-cluster" doc:"Repository name"`
	Provider  string        `json:"provider,omitempty" doc:"Where the repository is, if several providers are enabled"`
	Event     string        `json:"event" required:"true" enum:"approve,request-changes,comment" doc:"What the review says"`
	Body      string        `json:"body,omitempty" maxBytes:"65536" doc:"Required, unless lines are commented on, for request-changes and comment"`
	Head      string        `json:"head,omitempty" doc:"The head commit that you looked at: conflict if the branch has moved since"`
	Comments  []LineRequest `json:"comments,omitempty" maxItems:"50" doc:"On lines of files that the pull request changes"`

	Acknowledged []facts.Class `json:"acknowledged,omitempty" maxItems:"50" example:"destroy" doc:"Classes of facts that you have seen, where the policy has them confirmed to approve"`
}

// LineRequest is a comment on one line of a file.
type LineRequest struct {
	Path   string `json:"path" required:"true" example:"checks/disk.md" doc:"File of the comment"`
	Line   int    `json:"line" required:"true" minimum:"1" doc:"Line of the file, from 1"`
	Before bool   `json:"before,omitempty" doc:"The line is one of the file as it was before the change"`
	Body   string `json:"body" required:"true" minLength:"1" maxBytes:"65536" doc:"Text of the comment"`
}

// MergeRequest asks to merge a pull request.
type MergeRequest struct {
	Number    int    `json:"number" required:"true" minimum:"1" path:"number" doc:"Pull request number"`
	RepoOwner string `json:"repo_owner" required:"true" example:"joe" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" example:"home-cluster" doc:"Repository name"`
	Provider  string `json:"provider,omitempty" doc:"Where the repository is, if several providers are enabled"`
	Head      string `json:"head,omitempty" doc:"The head commit that you looked at: conflict if the branch has moved since"`
	Comment   string `json:"comment,omitempty" maxBytes:"65536" doc:"For the message of the merge commit"`
	Force     bool   `json:"force,omitempty" doc:"Merge although changes were requested, or the branch moved after it was approved"`

	Acknowledged []facts.Class `json:"acknowledged,omitempty" maxItems:"50" example:"destroy" doc:"Classes of facts that you have seen, where the policy has them confirmed"`
}

// CloseRequest asks to close a pull request without merging it.
type CloseRequest struct {
	Number    int    `json:"number" required:"true" minimum:"1" path:"number" doc:"Pull request number"`
	RepoOwner string `json:"repo_owner" required:"true" example:"joe" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" example:"home-cluster" doc:"Repository name"`
	Provider  string `json:"provider,omitempty" doc:"Where the repository is, if several providers are enabled"`
	Head      string `json:"head,omitempty" doc:"The head commit that you looked at: conflict if the branch has moved since"`
	Comment   string `json:"comment,omitempty" maxBytes:"65536" doc:"Why; a comment of the pull request"`
}

// Operations holds the dependencies of the operations.
type Operations struct {
	Service func() *Service
	// ProviderOf settles the provider of a repository.
	ProviderOf func(owner, name string) string
}

const forPeople = "For people, and for pull requests of local repositories; those of forges are reviewed there. "

// maxBody bounds the body of a request, in bytes.
const maxBody = 512 << 10

// Operations returns the operations for people only: no tool leads to them.
func (d Operations) Operations() []operation.Operation {
	return []operation.Operation{d.opinion(), d.mergeOperation(), d.close(), d.lift()}
}

// verbOperation returns the operation of a verb; "" for several.
func verbOperation(name, verb, summary string, route operation.Route) operation.Operation {
	return operation.Operation{Name: name, Action: actionOf(verb), Summary: summary, Effect: operation.Write, Route: route,
		Needs: NeedsOf(verb)}
}

func route(path, id, notes string, body int64) operation.Route {
	return operation.Route{Method: "POST", Path: "/prs/{number}/" + path, ID: id, Notes: notes, MaxBody: body,
		TooLarge: "write less"}
}

func (d Operations) opinion() operation.Operation {
	o := verbOperation("review_pr", "", "Approve a pull request, ask for changes, or comment on it and on its lines",
		route("reviews", "reviewPR",
			forPeople+"get_pr_status and the next session have what was said, with file and line.", maxBody))
	return decide(d.Service, o, func(in OpinionRequest) Request {
		r := d.newRequest(in.Provider, in.RepoOwner, in.RepoName, in.Number, in.Event, in.Body)
		r.Head, r.Acknowledged = in.Head, in.Acknowledged
		for _, c := range in.Comments {
			r.Comments = append(r.Comments, gitprovider.LineComment{Path: c.Path, Line: c.Line, Before: c.Before, Body: c.Body})
		}
		return r
	})
}

func (d Operations) mergeOperation() operation.Operation {
	o := verbOperation("merge_pr", "merge", "Merge a pull request", route("merge", "mergePR", forPeople+
		"Conflict, unless force is true, if changes are requested, or the branch moved after it was opened or last approved.",
		maxBody))
	return decide(d.Service, o, func(in MergeRequest) Request {
		r := d.newRequest(in.Provider, in.RepoOwner, in.RepoName, in.Number, "merge", in.Comment)
		r.Head, r.Force, r.Acknowledged = in.Head, in.Force, in.Acknowledged
		return r
	})
}

func (d Operations) close() operation.Operation {
	o := verbOperation("close_pr", "close", "Close a pull request without merging it",
		route("close", "closePR", strings.TrimSpace(forPeople), maxBody))
	return decide(d.Service, o, func(in CloseRequest) Request {
		r := d.newRequest(in.Provider, in.RepoOwner, in.RepoName, in.Number, "close", in.Comment)
		r.Head = in.Head
		return r
	})
}

func (d Operations) lift() operation.Operation {
	o := verbOperation("lift_cooldown", LiftCooldown, "Let the files of a closed pull request be proposed again at once",
		route("lift-cooldown", "liftCooldown",
			"For people. One that is closed again later is not lifted.", 0))
	return decide(d.Service, o, func(in LiftRequest) Request {
		return d.newRequest(in.Provider, in.RepoOwner, in.RepoName, in.Number, LiftCooldown, in.Comment)
	})
}

func (d Operations) newRequest(provider, owner, name string, number int, verb, comment string) Request {
	if provider == "" && owner != "" && name != "" {
		provider = d.ProviderOf(owner, name)
	}
	return Request{Provider: provider, Owner: owner, Name: name, Number: number, Verb: verb, Comment: comment}
}

// decide completes an operation that does what its input asks for.
func decide[In any](service func() *Service, o operation.Operation, read func(In) Request) operation.Operation {
	return operation.Define(func() *operation.Kernel { return service().Kernel }, "", o, operation.CallSpec[In]{
		Timeout: operation.Unbounded,
		Target: func(in In) operation.Target {
			r := read(in)
			return operation.Target{Provider: r.Provider, Owner: r.Owner, Name: r.Name, Number: r.Number,
				Action: actionOf(r.Verb)}
		},
	}, func(ctx context.Context, call operation.Call, in In) (Outcome, error) {
		return service().decide(ctx, call, read(in))
	})
}

// actionOf returns the audit's name of a verb; "review" for an unknown one.
func actionOf(name string) string {
	if verb, known := verbNamed(name); known {
		return verb.Action
	}
	return "review"
}
