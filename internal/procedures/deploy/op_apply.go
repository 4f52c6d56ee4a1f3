package deploy

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/base/plural"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/change"
)

// ApplyRequest says what to deploy.
type ApplyRequest struct {
	Repo    string `json:"repo,omitempty" doc:"Path to the agentpack config repo (default: $AGENTPACK_HOME/repo)."`
	Profile string `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Target  string `json:"target,omitempty" default:"all" enum:"all,codex,claude_code,cursor,vscode" doc:"Agent program to deploy to"`
	Machine string `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
	Adopt   bool   `json:"adopt,omitempty" default:"false" doc:"Allow overwriting existing unmanaged files (adopt updates)."`
	DryRun  bool   `json:"dry_run,omitempty" default:"false" doc:"Force dry-run behavior (do not apply even if this tool is the apply variant)."`
	Yes     bool   `json:"yes" required:"true" const:"true" doc:"Required explicit approval for mutating operations."`
}

func (r ApplyRequest) plan() PlanRequest {
	return PlanRequest{Repo: r.Repo, Profile: r.Profile, Target: r.Target, Machine: r.Machine}
}

// ApplyData says what was deployed, or would have been.
type ApplyData struct {
	Applied    bool                `json:"applied"`
	Reason     string              `json:"reason,omitempty" doc:"no_changes if there was nothing to do"`
	SnapshotID string              `json:"snapshot_id,omitempty" doc:"For rollback"`
	Previous   string              `json:"previous_snapshot_id,omitempty" doc:"For a rollback to what was there before"`
	Profile    string              `json:"profile"`
	Targets    []change.TargetName `json:"targets"`
	Changes    []change.Change     `json:"changes"`
	Summary    change.Summary      `json:"summary"`
}

func (s set) apply() operation.Operation {
	o := named(ToolApply, "Deploy", "Put procedures in place for the agents of this machine",
		"Put the modules in place for Codex, Claude Code, Cursor and VS Code: all of the plan or nothing of it. Call plan "+
			"or diff first, and ask a person. "+
			"Files that were there before are replaced only with adopt: true. snapshot_id is for rollback. With dry_run "+
			"nothing is changed.")
	o.Effect, o.Needs.Yes, o.Tool.Destructive, o.Tool.Repeatable = operation.Write, true, true, true
	way := operation.Way[ApplyRequest]{
		Timeout: writeTimeout, DryRun: func(in ApplyRequest) bool { return in.DryRun },
		Check: func(in ApplyRequest) *operation.Fault { return in.plan().check() },
	}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in ApplyRequest) (out Envelope[ApplyData], err error) {
			service := s.service()
			if in.Repo, err = service.fromCaller(call, in.Repo); err != nil {
				return out, faultOf(err)
			}
			ctx, fetched := noting(ctx)
			var note operation.Note
			defer func() { fetched.noteTo(call, note) }()
			p, done, err := service.Apply(ctx, in.plan().request(), change.Approval{Adopt: in.Adopt}, call.DryRun)
			if err != nil {
				return out, faultOf(err)
			}
			plan := dataOf(in.plan().profile(), p)
			data := ApplyData{Profile: plan.Profile, Targets: plan.Targets, Changes: plan.Changes, Summary: plan.Summary}
			switch {
			case done != nil:
				data.Applied, data.SnapshotID, data.Previous = true, done.ID, done.Previous
				note = noteOf(done)
			case !call.DryRun:
				data.Reason = "no_changes"
			}
			return enveloped(ToolApply, service.version, data, append(p.Warnings, changedMeanwhile(done)...)), nil
		})
}

// changedMeanwhile returns warnings about files that were changed while they were being deployed.
func changedMeanwhile(d *change.Done) (out []string) {
	if d == nil {
		return nil
	}
	for _, name := range d.Changed {
		out = append(out, name+" was changed by somebody else meanwhile, and was left as it is")
	}
	return out
}

// maxNoted bounds the paths in a row of the audit.
const maxNoted = 100

// changed counts the changes of a deployment or a rollback.
func changed(done *change.Done) string { return plural.Of(len(done.Steps), "change", "changes") }

// noteOf returns the audit's note about a deployment or a rollback.
func noteOf(done *change.Done) operation.Note {
	n := operation.Note{Message: fmt.Sprintf("%s, snapshot %s: %s", done.Kind, done.ID, changed(done))}
	if done.RolledBackTo != "" {
		n.Message += ", back to " + done.RolledBackTo
	}
	for _, s := range done.Steps[:min(len(done.Steps), maxNoted)] {
		n.Paths = append(n.Paths, s.Path)
	}
	if more := len(done.Steps) - maxNoted; more > 0 {
		n.Message += fmt.Sprintf("; the snapshot names %d more files", more)
	}
	return n
}
