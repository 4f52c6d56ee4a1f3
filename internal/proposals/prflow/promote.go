package prflow

import (
	"context"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// promote opens the pull request that the dry run with an id has shown. It is for people: no door of an agent leads
// here. It is a new attempt with a request id of its own, at the Service's tier, and every gate is asked again, since
// the repository, the policy and the record may have moved since.
//
// Errors are those of create, and not_found for an unknown id, conflict if it was not a dry run, read_only if this process
// is in dry run itself: what the operator configured holds for people, too.
func (s *Service) promote(ctx context.Context, call operation.Call, id string) (CreateResult, error) {
	c := s.newCreation(call)
	return c.attempt(ctx, func() (CreateResult, error) { return c.promote(ctx, id) })
}

func (c *creation) promote(ctx context.Context, id string) (CreateResult, error) {
	p, err := c.service.History.Proposal(ctx, id)
	if err != nil {
		return CreateResult{}, err
	}
	c.request.asked.RepoOwner, c.request.asked.RepoName = p.Owner, p.Repo // for the record of a refusal
	if p.State != record.StateDryRun {
		return CreateResult{}, fault.New(fault.Conflict,
			"the proposal is no dry run (its state is %s), so there is nothing to open; look at it, and at the open pull requests",
			p.State)
	}
	if !p.PrunedAt.IsZero() {
		return CreateResult{}, fault.New(fault.Conflict, "the contents of this dry run were removed because of their age "+
			"(CLAUDEOPS_RETENTION); propose the change again")
	}
	if c.rules.DryRun {
		return CreateResult{}, fault.New(fault.ReadOnly, "this server is in dry run (CLAUDEOPS_DRY_RUN) and opens no pull "+
			"request; the operator may start it without, for people")
	}
	raw, err := json.Marshal(requestOf(p))
	if err != nil {
		return CreateResult{}, err
	}
	c.request.promoted = &p
	return c.run(ctx, raw)
}

// requestOf returns the request that a proposal was made of. It holds the versions of the files that the proposal was
// compared with: a person opens what was shown, or learns that the base branch has moved on.
func requestOf(p record.Proposal) CreateRequest {
	r := CreateRequest{
		RepoOwner: p.Owner, RepoName: p.Repo, BaseBranch: p.Base, ChangeType: string(p.ChangeType),
		Title: p.Title, Body: AgentText(p.Body), Revises: p.Revises, Files: []FileRequest{},
	}
	r.takeAnswers(p)
	for _, f := range p.Files {
		file := FileRequest{Path: f.Path, Action: string(f.Action), BaseSHA: f.BaseSHA}
		if f.Action != gitprovider.ActionDelete {
			file.Content = &f.Content
		}
		r.Files = append(r.Files, file)
	}
	return r
}
