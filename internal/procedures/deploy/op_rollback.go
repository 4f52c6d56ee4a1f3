package deploy

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// RollbackRequest says where to go back to.
type RollbackRequest struct {
	Repo string `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	To   string `json:"to" required:"true" id:"snapshot" doc:"Snapshot id to rollback to."`
	Yes  bool   `json:"yes" required:"true" const:"true" doc:"Required explicit approval for mutating operations."`
}

// RollbackData says what was gone back to, or would have been.
type RollbackData struct {
	RolledBackTo    string           `json:"rolled_back_to"`
	EventSnapshotID string           `json:"event_snapshot_id,omitempty" doc:"The snapshot of this rollback, which can be gone back from in the same way"`
	Changes         []fileset.Change `json:"changes,omitempty" doc:"In a dry run: what it would change"`
	Summary         *fileset.Summary `json:"summary,omitempty" doc:"In a dry run"`
}

func (s toolDeps) rollback() operation.Operation {
	o := readOperation(ToolRollback, "Roll back", "Put back the files of an earlier deployment",
		"Put back the files of a snapshot in this project and in the user's folders, byte for byte, and what stood there "+
			"before of files that were adopted since. "+
			"What is there now is kept, so that rolling back to the snapshot before undoes it. to is the snapshot_id that "+
			"deploy_apply gave.")
	o.Effect, o.Needs.Yes, o.Tool.Destructive, o.Tool.Repeatable = operation.Write, true, true, true
	way := operation.CallSpec[RollbackRequest]{
		Timeout: writeTimeout,
		Check: func(in RollbackRequest) *operation.Fault {
			return checkArgumentLengths(map[string]string{"repo": in.Repo, "to": in.To})
		},
	}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in RollbackRequest) (out Envelope[RollbackData], err error) {
			service := s.service()
			if call.DryRun {
				p, err := service.PlanRollback(ctx, in.To)
				if err != nil {
					return out, faultOf(err)
				}
				summary := p.Summary()
				data := RollbackData{RolledBackTo: in.To, Changes: p.Changes, Summary: &summary}
				return enveloped(ToolRollback, service.version, data, append(p.Warnings, "this is a dry run: nothing was changed")),
					nil
			}
			done, warnings, err := service.Rollback(ctx, in.To, "")
			if err != nil {
				return out, faultOf(err)
			}
			call.Note(noteOf(done))
			data := RollbackData{RolledBackTo: done.RolledBackTo, EventSnapshotID: done.ID}
			return enveloped(ToolRollback, service.version, data, append(warnings, changedMeanwhile(done)...)), nil
		})
}

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
		operation.Define(a.Kernel, "", pruned(), operation.CallSpec[PruneRequest]{Timeout: operation.Unbounded}, a.prune),
		operation.Define(a.Kernel, "", operation.Operation{
			Name: NameRollBack, Action: "deploy.rollback",
			Summary: "Put back the files of a snapshot as the plan that was shown says", Effect: operation.Write,
			Needs: operation.Needs{For: operation.Person, Scope: access.Operate, Writable: true},
		}, operation.CallSpec[ShownRollback]{Timeout: operation.Unbounded}, a.rollBack),
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
				p, verb := out.(fileset.Pruned), "Removed"
				if p.DryRun {
					verb = "This is a dry run. It would remove"
				}
				return fmt.Sprintf("%s %s (%d bytes in all); snapshots left: %d.", verb, removed(p), p.Bytes, p.Kept)
			},
		},
	}
}

// removed describes what pruning removes.
func removed(p fileset.Pruned) string {
	return fault.Count(p.Snapshots, "snapshot", "snapshots") + ", " + fault.Count(p.Objects, "content",
		"contents") + " and " +
		fault.Count(p.Commits, "commit", "commits") + " of the cache"
}

func (a Acts) prune(ctx context.Context, call operation.Call, in PruneRequest) (fileset.Pruned, error) {
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

// keepSnapshots is the default number of snapshots that Prune keeps.
const keepSnapshots = 100

// keepCommits is how long the files of a commit of another repository are kept after their last use. They can be
// fetched again.
const keepCommits = 30 * 24 * time.Hour

// Prune removes all snapshots except the newest keep, at least one, and the contents that no snapshot needs any more:
// every snapshot that is left can be rolled back to, byte for byte. A snapshot of a deployment that replaced a person's
// file stays, with the file, however old it is. With dryRun it only counts. The next call finishes one that was killed.
func (s *Service) Prune(ctx context.Context, keep int, dryRun bool) (out fileset.Pruned, err error) {
	if err := s.checkHome(); err != nil {
		return out, faultOf(err)
	}
	if why := s.engine.Closed(); why != "" && !dryRun {
		return out, faultOf(fileset.NewError(notAllowed, "read_only", []string{"ask_operator"}, "nothing is removed: %s",
			why))
	}
	out, err = s.engine.Prune(ctx, keep, dryRun)
	if err == nil {
		out.Commits, err = s.pruneCommits(dryRun)
	}
	return out, faulted(err)
}

// pruneCommits removes commits of other repositories that were not used for a while, and what killed processes left
// beside them.
func (s *Service) pruneCommits(dryRun bool) (count int, err error) {
	cache := s.setup.Git.cache
	for _, name := range slices.Concat(files.Glob(cache, filepath.Join("*", "*")), files.Glob(cache, ".checkout-*")) {
		info, err := files.Lstat(name)
		if err != nil || s.engine.State().Now().Sub(info.ModTime()) < keepCommits ||
			strings.HasPrefix(filepath.Base(filepath.Dir(name)), ".") && filepath.Dir(name) != cache {
			continue
		}
		if !dryRun {
			if err := files.RemoveAll(name); err != nil {
				return count, ioError(name, err)
			}
		}
		count++
	}
	return count, nil
}
