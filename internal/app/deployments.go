package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Deployments serves the page of deployments. What is fetched for it is recorded.
type Deployments struct {
	*deploy.Service
	parts *Parts
}

// NewDeployments makes Deployments.
func NewDeployments(p *Parts) *Deployments { return &Deployments{p.Tools.Deploy(), p} }

// keepDeployed deploys what is merged until ctx is done, if that is switched on.
func keepDeployed(ctx context.Context, p *Parts) {
	if !p.Cfg.Tools.Deploy.AfterMerge {
		return
	}
	service := p.Tools.Deploy()
	deploy.NewDeployer(deploy.DeployerOptions{
		Service: service, State: service.Engine().State(), Audit: p.Store.Audit, Ledger: p.Store.Ledger, Notifier: p.notifier,
		Claim:  func(ctx context.Context) (func(), error) { return p.Store.Pauses().Claim(ctx, "", "") },
		Redact: p.Scanner.Redact, Log: p.Log, Now: time.Now, NewID: NewID,
	}).Keep(ctx, time.Tick)
}

// Look says what would change and what has drifted. The audit has a row if something was fetched for it.
func (d *Deployments) Look(ctx context.Context) (o deploy.Overview, err error) {
	err = d.fetching(ctx, record.Attempt{Action: deploy.ToolPlan}, func(ctx context.Context) error {
		o, err = d.Service.Look(ctx)
		return err
	})
	return o, err
}

// Preview says what a deployment would change with a commit. The audit has a row if something was fetched for it.
func (d *Deployments) Preview(ctx context.Context, c deploy.Candidate) (p deploy.Preview, err error) {
	row := record.Attempt{Action: deploy.ToolPlan, Provider: c.Provider, Owner: c.Owner, Repo: c.Name}
	err = d.fetching(ctx, row, func(ctx context.Context) error {
		p, err = d.Service.Preview(ctx, c)
		return err
	})
	return p, err
}

// WhereIs says what targets have of proposed files. The audit has a row if something was fetched for it.
func (d *Deployments) WhereIs(ctx context.Context, provider, owner, name string,
	hashes map[string]string) (out []deploy.Whereabouts, err error) {
	row := record.Attempt{Action: deploy.ToolPlan, Provider: provider, Owner: owner, Repo: name}
	err = d.fetching(ctx, row, func(ctx context.Context) error {
		out, err = d.Service.WhereIs(ctx, provider, owner, name, hashes)
		return err
	})
	return out, err
}

// fetching records which addresses f asked, if there were any.
func (d *Deployments) fetching(ctx context.Context, row record.Attempt, f func(ctx context.Context) error) error {
	started := time.Now()
	said, err := deploy.Fetched(ctx, f)
	if said == "" {
		return err
	}
	row.Time, row.RequestID, row.Duration = d.parts.Store.Now(), NewID(), time.Since(started)
	row.Actor = record.Actor{Door: record.DoorWeb, System: record.SystemServe}
	row.Outcome = record.OutcomeDone
	row.Message = d.parts.Scanner.Redact(said)
	if err != nil {
		general := fault.From(err)
		row.Outcome, row.Code = record.OutcomeOf(general.Code), general.Code
		row.Message = d.parts.Scanner.Redact(general.Message + "\n" + said)
	}
	if recordErr := d.parts.Store.Ledger.Record(context.WithoutCancel(ctx), row, nil); recordErr != nil && err == nil {
		err = recordErr
	}
	return err
}

// Snapshots returns the newest ones.
func (d *Deployments) Snapshots(most int) ([]*fileset.Snapshot, error) {
	list, err := d.Service.Snapshots(most)
	return list, deploy.Failure(err)
}

// PlanRollback says what Rollback would change.
func (d *Deployments) PlanRollback(ctx context.Context, id string) (*fileset.Plan, error) {
	p, err := d.Service.PlanRollback(ctx, id)
	if err != nil {
		return nil, deploy.Failure(err)
	}
	return p, nil
}

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
