package review

import (
	"cmp"
	"context"

	"github.com/claudeops/claudeops/internal/access"
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

// LiftOperation is for people, so that no tool leads to it. providerOf settles the provider of a repository.
func LiftOperation(service func() *Service, providerOf func(owner, name string) string) operation.Operation {
	return operation.New(operation.Operation{
		Name: "lift_cooldown", Summary: "Let the files of a closed pull request be proposed again at once",
		Effect: operation.Write, LowestTier: gitprovider.TierObserve,
		Route: operation.Route{
			Method: "POST", Path: "/prs/{number}/lift-cooldown", Scope: access.Review, ID: "liftCooldown",
			Notes: "For people. One that is closed again later is not lifted.",
		},
	}, func(ctx context.Context, call operation.Call, in LiftRequest) (Outcome, error) {
		return service().Do(ctx, Request{
			Provider: cmp.Or(in.Provider, providerOf(in.RepoOwner, in.RepoName)), Owner: in.RepoOwner, Name: in.RepoName, Number: in.Number,
			Verb: LiftCooldown, Comment: in.Comment, By: call.Caller,
		})
	})
}
