package review

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
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
	Force     bool   `json:"force,omitempty" doc:"Merge although changes were requested, or the branch moved after it was approved"`
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
		Name: name, Summary: summary, Effect: operation.Write, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Review},
		Route: operation.Route{
			Method: "POST", Path: "/prs/{number}/" + path, ID: id, Notes: notes, MaxBody: body, TooLarge: "write less",
		},
	}
}

func (d Desk) opinion() operation.Operation {
	o := person(nameReview, "Approve a pull request, ask for changes, or comment on it and on its lines", "reviews", "reviewPR",
		forPeople+"get_pr_status and the next session have what was said, with file and line.", maxBody)
	return decide(d, o, func(in OpinionRequest) Request {
		r := Request{Provider: in.Provider, Owner: in.RepoOwner, Name: in.RepoName, Number: in.Number, Verb: in.Event, Comment: in.Body, Head: in.Head}
		for _, c := range in.Comments {
			r.Comments = append(r.Comments, gitprovider.LineComment{Path: c.Path, Line: c.Line, Before: c.Before, Body: c.Body})
		}
		return r
	})
}

func (d Desk) merge() operation.Operation {
	o := person(nameMerge, "Merge a pull request", "merge", "mergePR", forPeople+
		"Conflict, unless force is true, if changes are requested, or the branch moved after it was opened or last approved.", maxBody)
	return decide(d, o, func(in MergeRequest) Request {
		return Request{
			Provider: in.Provider, Owner: in.RepoOwner, Name: in.RepoName, Number: in.Number, Verb: "merge", Comment: in.Comment, Head: in.Head,
			Force: in.Force,
		}
	})
}

func (d Desk) close() operation.Operation {
	o := person(nameClose, "Close a pull request without merging it", "close", "closePR", strings.TrimSpace(forPeople), maxBody)
	return decide(d, o, func(in CloseRequest) Request {
		return Request{
			Provider: in.Provider, Owner: in.RepoOwner, Name: in.RepoName, Number: in.Number, Verb: "close", Comment: in.Comment, Head: in.Head,
		}
	})
}

func (d Desk) lift() operation.Operation {
	o := person(nameLift, "Let the files of a closed pull request be proposed again at once", "lift-cooldown", "liftCooldown",
		"For people. One that is closed again later is not lifted.", 0)
	return decide(d, o, func(in LiftRequest) Request {
		return Request{Provider: in.Provider, Owner: in.RepoOwner, Name: in.RepoName, Number: in.Number, Verb: LiftCooldown, Comment: in.Comment}
	})
}

// decide completes an operation that does what its input asks for. Arguments that cannot be read are recorded like every other refusal.
func decide[In any](d Desk, o operation.Operation, read func(In) Request) operation.Operation {
	return operation.NewRaw[In](o, func(ctx context.Context, call operation.Call) (Outcome, error) {
		var in In
		violations := strictjson.DecodeWithinLimits(call.Arguments, &in, strictjson.Options{})
		if len(violations) > 0 {
			_ = json.Unmarshal(call.Arguments, &in) // as far as it can be read, for the record of the refusal
		}
		r := read(in)
		if len(violations) > 0 && (gitprovider.CheckRepoPart(r.Owner) != nil || gitprovider.CheckRepoPart(r.Name) != nil) {
			r.Owner, r.Name = "", ""
		}
		r.By, r.Provider = call.Caller, cmp.Or(r.Provider, d.ProviderOf(r.Owner, r.Name))
		if len(violations) > 0 {
			return Outcome{}, d.Service().Refused(ctx, r, fault.Refusal(violations))
		}
		return d.Service().Do(ctx, r)
	})
}
