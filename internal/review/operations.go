package review

import (
	"cmp"
	"context"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
)

// LiftRequest names a closed pull request of ours.
type LiftRequest struct {
	Number    int    `json:"number" required:"true" minimum:"1" path:"number"`
	RepoOwner string `json:"repo_owner" required:"true"`
	RepoName  string `json:"repo_name" required:"true"`
	Provider  string `json:"provider,omitempty" doc:"Where the repository is, if several providers are enabled"`
	Comment   string `json:"comment,omitempty" maxLength:"500" doc:"Why; the audit has it"`
}

// OpinionRequest is what a person says of a pull request.
type OpinionRequest struct {
	Number    int           `json:"number" required:"true" minimum:"1" path:"number"`
	RepoOwner string        `json:"repo_owner" required:"true" example:"joe"`
	RepoName  string        `json:"repo_name" required:"true" example:"home-cluster"`
	Provider  string        `json:"provider,omitempty" doc:"Where the repository is, if several providers are enabled"`
	Event     string        `json:"event" required:"true" enum:"approve,request-changes,comment"`
	Body      string        `json:"body,omitempty" maxBytes:"65536" doc:"Required, unless lines are commented on, for request-changes and comment"`
	Head      string        `json:"head,omitempty" doc:"The head commit that you looked at: conflict if the branch has moved since"`
	Comments  []LineRequest `json:"comments,omitempty" maxItems:"50" doc:"On lines of files that the pull request changes"`
}

// LineRequest is a comment on one line of a file.
type LineRequest struct {
	Path   string `json:"path" required:"true" example:"checks/disk.md"`
	Line   int    `json:"line" required:"true" minimum:"1"`
	Before bool   `json:"before,omitempty" doc:"The line is one of the file as it was before the change"`
	Body   string `json:"body" required:"true" minLength:"1" maxBytes:"65536"`
}

// MergeRequest asks to merge a pull request.
type MergeRequest struct {
	Number    int    `json:"number" required:"true" minimum:"1" path:"number"`
	RepoOwner string `json:"repo_owner" required:"true" example:"joe"`
	RepoName  string `json:"repo_name" required:"true" example:"home-cluster"`
	Provider  string `json:"provider,omitempty" doc:"Where the repository is, if several providers are enabled"`
	Head      string `json:"head,omitempty" doc:"The head commit that you looked at: conflict if the branch has moved since"`
	Comment   string `json:"comment,omitempty" maxBytes:"65536" doc:"For the message of the merge commit"`
	Force     bool   `json:"force,omitempty" doc:"Merge although changes were requested, checks fail, or the branch moved after it was approved"`
}

// CloseRequest asks to close a pull request without merging it.
type CloseRequest struct {
	Number    int    `json:"number" required:"true" minimum:"1" path:"number"`
	RepoOwner string `json:"repo_owner" required:"true" example:"joe"`
	RepoName  string `json:"repo_name" required:"true" example:"home-cluster"`
	Provider  string `json:"provider,omitempty" doc:"Where the repository is, if several providers are enabled"`
	Head      string `json:"head,omitempty" doc:"The head commit that you looked at: conflict if the branch has moved since"`
	Comment   string `json:"comment,omitempty" maxBytes:"65536" doc:"Why; a comment of the pull request"`
}

// The names of the operations.
const (
	nameReview = "review_pr"
	nameMerge  = "merge_pr"
	nameClose  = "close_pr"
	nameLift   = "lift_cooldown"
)

// Desk is what the operations ask.
type Desk struct {
	Service func() *Service
	// ProviderOf settles the provider of a repository.
	ProviderOf func(owner, name string) string
}

const forPeople = "For people, and for pull requests of local repositories; those of forges are reviewed there. "

// maxBody bounds the body of a request, in bytes.
const maxBody = 512 << 10

// Operations are for people, so that no tool leads to them.
func (d Desk) Operations() []operation.Operation {
	return []operation.Operation{d.opinion(), d.merge(), d.close(), d.lift()}
}

// Reject records a request for one of the operations that never came to it; false if it is none of them.
func (d Desk) Reject(ctx context.Context, call operation.Call, name string, why *fault.Error) bool {
	verb, ours := map[string]string{nameReview: "", nameMerge: "merge", nameClose: "close", nameLift: LiftCooldown}[name]
	if ours {
		_ = d.Service().Refused(ctx, Request{Verb: verb, By: call.Caller}, why) // the error is the caller's already
	}
	return ours
}

func person(name, summary, path, id, notes string, body int64) operation.Operation {
	return operation.Operation{
		Name: name, Summary: summary, Effect: operation.Write, LowestTier: gitprovider.TierObserve,
		Route: operation.Route{
			Method: "POST", Path: "/prs/{number}/" + path, Scope: access.Review, ID: id, Notes: notes, MaxBody: body, TooLarge: "write less",
		},
	}
}

func (d Desk) opinion() operation.Operation {
	o := person(nameReview, "Approve a pull request, ask for changes, or comment on it and on its lines", "reviews", "reviewPR",
		forPeople+"get_pr_status and the next session have what was said, with file and line.", maxBody)
	return operation.New(o, func(ctx context.Context, call operation.Call, in OpinionRequest) (Outcome, error) {
		r := Request{Verb: in.Event, Comment: in.Body, Head: in.Head}
		for _, c := range in.Comments {
			r.Comments = append(r.Comments, gitprovider.LineComment{Path: c.Path, Line: c.Line, Before: c.Before, Body: c.Body})
		}
		return d.do(ctx, call, r, place{in.Provider, in.RepoOwner, in.RepoName, in.Number})
	})
}

func (d Desk) merge() operation.Operation {
	o := person(nameMerge, "Merge a pull request", "merge", "mergePR", forPeople+
		"Conflict, unless force is true, if changes are requested, checks fail, or the branch moved after it was opened or last approved.", maxBody)
	return operation.New(o, func(ctx context.Context, call operation.Call, in MergeRequest) (Outcome, error) {
		r := Request{Verb: "merge", Comment: in.Comment, Head: in.Head, Force: in.Force}
		return d.do(ctx, call, r, place{in.Provider, in.RepoOwner, in.RepoName, in.Number})
	})
}

func (d Desk) close() operation.Operation {
	o := person(nameClose, "Close a pull request without merging it", "close", "closePR", forPeople, maxBody)
	return operation.New(o, func(ctx context.Context, call operation.Call, in CloseRequest) (Outcome, error) {
		r := Request{Verb: "close", Comment: in.Comment, Head: in.Head}
		return d.do(ctx, call, r, place{in.Provider, in.RepoOwner, in.RepoName, in.Number})
	})
}

func (d Desk) lift() operation.Operation {
	o := person(nameLift, "Let the files of a closed pull request be proposed again at once", "lift-cooldown", "liftCooldown",
		"For people. One that is closed again later is not lifted.", 0)
	return operation.New(o, func(ctx context.Context, call operation.Call, in LiftRequest) (Outcome, error) {
		return d.do(ctx, call, Request{Verb: LiftCooldown, Comment: in.Comment}, place{in.Provider, in.RepoOwner, in.RepoName, in.Number})
	})
}

// place is the pull request that a request names.
type place struct {
	provider, owner, name string
	number                int
}

func (d Desk) do(ctx context.Context, call operation.Call, r Request, at place) (Outcome, error) {
	r.Provider, r.Owner, r.Name, r.Number = cmp.Or(at.provider, d.ProviderOf(at.owner, at.name)), at.owner, at.name, at.number
	r.By = call.Caller
	return d.Service().Do(ctx, r)
}
