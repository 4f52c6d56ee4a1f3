package deploy

import (
	"context"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/toolset"
)

// RollbackRequest says where to go back to.
type RollbackRequest struct {
	Repo string `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	To   string `json:"to" required:"true" doc:"Snapshot id to rollback to."`
	Yes  bool   `json:"yes" required:"true" const:"true" doc:"Required explicit approval for mutating operations."`
}

// RollbackData says what was gone back to.
type RollbackData struct {
	RolledBackTo    string `json:"rolled_back_to"`
	EventSnapshotID string `json:"event_snapshot_id,omitempty" doc:"The snapshot of this rollback, which can be gone back from in the same way"`
}

func (s set) rollback() operation.Operation {
	o := named(ToolRollback, "Roll back", "Put back the files of an earlier deployment",
		"Put back the files of a snapshot, byte for byte, and what stood there before of files that were adopted since. What is there now is kept, so that "+
			"rolling back to the snapshot before undoes it. to is the snapshot_id that deploy_apply gave.")
	o.Effect, o.Tool.Destructive, o.Tool.Repeatable = operation.Write, true, true
	way := toolset.Way[RollbackRequest]{
		Approval: true, Timeout: writeTimeout,
		Check: func(in RollbackRequest) *toolset.Fault {
			return bounded(map[string]string{"repo": in.Repo, "to": in.To})
		},
	}
	return toolset.New(s.kernel, ToolsetName, o, way, func(ctx context.Context, call toolset.Call, in RollbackRequest) (out Envelope[RollbackData], err error) {
		service := s.service()
		if call.DryRun {
			snap, err := service.Snapshot(in.To)
			if err != nil {
				return out, faultOf(err)
			}
			return enveloped(ToolRollback, service.version, RollbackData{RolledBackTo: snap.ID}, []string{"this is a dry run: nothing was changed"}), nil
		}
		done, warnings, err := service.Rollback(ctx, in.To)
		if err != nil {
			return out, faultOf(err)
		}
		call.Note(noteOf(done))
		return enveloped(ToolRollback, service.version, RollbackData{done.RolledBackTo, done.ID}, append(warnings, done.warnings()...)), nil
	})
}
