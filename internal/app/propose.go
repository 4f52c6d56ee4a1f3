package app

import (
	"context"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

// proposer asks create, which is the operation of create_pr, for what was changed in a deployment. The call keeps its
// id, so that the audit has it as the attempt that it is.
func proposer(create operation.Operation, providerOf func(owner, name string) string) deploy.Proposer {
	return func(ctx context.Context, call operation.Call, p deploy.Proposal) (deploy.Proposed, []string, error) {
		request := prflow.CreateRequest{
			RepoOwner: p.Home.Owner, RepoName: p.Home.Name, CloneURL: p.Home.CloneURL, BaseBranch: p.Home.Base,
			Title: p.Title, Body: p.Body, ChangeType: p.ChangeType,
		}
		for _, f := range p.Files {
			file := prflow.FileRequest{Path: f.Path, Action: string(f.Action), BaseSHA: f.BaseSHA}
			if f.Action != gitprovider.ActionDelete {
				file.Content = &f.Content
			}
			request.Files = append(request.Files, file)
		}
		arguments, err := json.Marshal(request)
		if err != nil {
			return deploy.Proposed{}, nil, err
		}
		answer, err := create.Handle(ctx, operation.Call{Caller: call.Caller, Ceiling: call.Ceiling, Scopes: call.Scopes,
			Person: call.Person, Arguments: arguments, ID: call.ID})
		if err != nil {
			return deploy.Proposed{}, nil, err
		}
		done := answer.(prflow.CreateResult)
		return deploy.Proposed{
			Repository: p.Home.Owner + "/" + p.Home.Name, Number: done.Number, URL: done.URL, Branch: done.Branch,
			Title: p.Title, Files: done.Files,
			Reused: done.Reused, DryRun: done.DryRun, Provider: providerOf(p.Home.Owner, p.Home.Name),
		}, done.Warnings, nil
	}
}
