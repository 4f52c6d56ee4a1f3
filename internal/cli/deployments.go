package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/deploy"
	"github.com/claudeops/claudeops/internal/mergedeploy"
	"github.com/claudeops/claudeops/internal/people"
)

// deployments is what the page of deployments asks: the service, and a rollback by a person, which is judged and recorded as such.
type deployments struct {
	*deploy.Service
	parts *parts
}

// keepDeployed deploys what is merged until ctx is done, if that is switched on.
func keepDeployed(ctx context.Context, p *parts) {
	if !p.cfg.Tools.Deploy.AfterMerge {
		return
	}
	service := p.tools.deploy()
	mergedeploy.New(mergedeploy.Options{
		Service: service, State: service.Engine().State(), Audit: p.store.Audit, Ledger: p.store.Ledger, Notifier: p.notifier,
		Redact: p.scanner.Redact, Log: p.log, Now: time.Now, NewID: newID,
	}).Keep(ctx, time.Tick)
}

// Snapshots are the newest ones.
func (d *deployments) Snapshots(most int) ([]*deploy.Snapshot, error) {
	list, err := d.Service.Snapshots(most)
	return list, deploy.Failure(err)
}

// Rollback puts back the files of a snapshot, and records who wanted it.
func (d *deployments) Rollback(ctx context.Context, o people.Operator, id string) error {
	return d.parts.people.Do(ctx, act(o), func(row people.Row) error {
		done, _, err := d.Service.Rollback(ctx, id)
		if err != nil {
			return deploy.Failure(err)
		}
		entry := row(fmt.Sprintf("back to %s, snapshot %s: %d changes", id, done.ID, len(done.Steps)))
		return d.parts.store.Ledger.Record(context.WithoutCancel(ctx), entry, nil)
	})
}

// Refused records a rollback that was refused before Rollback was asked.
func (d *deployments) Refused(ctx context.Context, o people.Operator, why error) error {
	return d.parts.people.Refused(ctx, act(o), why)
}

func act(o people.Operator) people.Act {
	return people.Act{Action: people.RollBack, By: o.By, RequestID: o.RequestID}
}
