package deploy

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/base/plural"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/change"
)

// Acts are the operations on deployments for people only. All fields are required.
type Acts struct {
	Kernel  func() *operation.Kernel
	Service func() *Service
	Audit   func() operation.Audit
}

// PruneRequest says what stays.
type PruneRequest struct {
	Keep int `json:"keep,omitempty" minimum:"1" doc:"how many of the newest snapshots to keep (default 100)"`
}

// ShownRollback is a rollback whose plan a person has seen.
type ShownRollback struct {
	To   string `json:"to" required:"true"`
	Plan string `json:"plan" required:"true"` // its digest
}

// RolledBack names the snapshot that a rollback has made.
type RolledBack struct {
	Snapshot string `json:"snapshot"`
}

// NameRollBack is the operation of the page.
const NameRollBack = "roll_back_deployment"

// Operations remove old snapshots, and roll back to one as its plan was shown.
func (a Acts) Operations() []operation.Operation {
	return []operation.Operation{
		operation.Define(a.Kernel, "", pruned(), operation.Way[PruneRequest]{Timeout: operation.Unbounded}, a.prune),
		operation.Define(a.Kernel, "", operation.Operation{
			Name: NameRollBack, Action: "deploy.rollback",
			Summary: "Put back the files of a snapshot as the plan that was shown says", Effect: operation.Write,
			Needs: operation.Needs{For: operation.Person, Scope: access.Operate, Writable: true},
		}, operation.Way[ShownRollback]{Timeout: operation.Unbounded}, a.rollBack),
	}
}

func (a Acts) rollBack(ctx context.Context, call operation.Call, in ShownRollback) (RolledBack, error) {
	done, _, err := a.Service().Rollback(ctx, in.To, in.Plan)
	if err != nil {
		return RolledBack{}, Failure(err)
	}
	row := call.Done(fmt.Sprintf("back to %s, snapshot %s: %s", in.To, done.ID, changed(done)))
	return RolledBack{done.ID}, a.Audit().Record(context.WithoutCancel(ctx), row, nil)
}

func pruned() operation.Operation {
	return operation.Operation{
		Name: "prune_snapshots", Action: "prune", Summary: "Remove the oldest snapshots, and contents that no snapshot needs",
		Effect:  operation.Write,
		Command: "deploy prune", Needs: operation.Needs{For: operation.Person, Dry: operation.DryTried},
		Shown: operation.Shown{
			Fresh: true, Example: "  claudeops deploy prune --keep 100 --dry-run",
			Help: "prune removes all snapshots but the newest ones, and the contents that none of those needs: each one that " +
				"is left can be rolled\n" +
				"back to. Snapshots of deployments that replaced a person's file stay, with the file. With --dry-run it prints " +
				"what would go.",
			Said: func(out any, _ bool) string {
				p, verb := out.(change.Pruned), "Removed"
				if p.DryRun {
					verb = "This is a dry run. It would remove"
				}
				return fmt.Sprintf("%s %s (%d bytes in all); snapshots left: %d.", verb, removed(p), p.Bytes, p.Kept)
			},
		},
	}
}

// removed describes what pruning removes.
func removed(p change.Pruned) string {
	return plural.Of(p.Snapshots, "snapshot", "snapshots") + ", " + plural.Of(p.Objects, "content", "contents") + " and " +
		plural.Of(p.Commits, "commit", "commits") + " of the cache"
}

func (a Acts) prune(ctx context.Context, call operation.Call, in PruneRequest) (change.Pruned, error) {
	if in.Keep == 0 {
		in.Keep = keepSnapshots
	}
	out, err := a.Service().Prune(ctx, in.Keep, call.DryRun)
	if err != nil || out.DryRun {
		return out, err
	}
	row := call.Done("deployments: removed " + removed(out))
	return out, a.Audit().Record(context.WithoutCancel(ctx), row, nil)
}
