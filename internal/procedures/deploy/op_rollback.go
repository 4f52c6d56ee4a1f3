package deploy

import (
	"context"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/change"
)

// RollbackRequest says where to go back to.
type RollbackRequest struct {
	Repo string `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	To   string `json:"to" required:"true" doc:"Snapshot id to rollback to."`
	Yes  bool   `json:"yes" required:"true" const:"true" doc:"Required explicit approval for mutating operations."`
}

// RollbackData says what was gone back to, or would have been.
type RollbackData struct {
	RolledBackTo    string          `json:"rolled_back_to"`
	EventSnapshotID string          `json:"event_snapshot_id,omitempty" doc:"The snapshot of this rollback, which can be gone back from in the same way"`
	Changes         []change.Change `json:"changes,omitempty" doc:"In a dry run: what it would change"`
	Summary         *change.Summary `json:"summary,omitempty" doc:"In a dry run"`
}

func (s set) rollback() operation.Operation {
	o := named(ToolRollback, "Roll back", "Put back the files of an earlier deployment",
		"Put back the files of a snapshot in this project and in the user's folders, byte for byte, and what stood there "+
			"before of files that were adopted since. "+
			"What is there now is kept, so that rolling back to the snapshot before undoes it. to is the snapshot_id that "+
			"deploy_apply gave.")
	o.Effect, o.Needs.Yes, o.Tool.Destructive, o.Tool.Repeatable = operation.Write, true, true, true
	way := operation.Way[RollbackRequest]{
		Timeout: writeTimeout,
		Check: func(in RollbackRequest) *operation.Fault {
			return bounded(map[string]string{"repo": in.Repo, "to": in.To})
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
