package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/fileset"
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
	Applied    bool                 `json:"applied"`
	Reason     string               `json:"reason,omitempty" doc:"no_changes if there was nothing to do"`
	SnapshotID string               `json:"snapshot_id,omitempty" doc:"For rollback"`
	Previous   string               `json:"previous_snapshot_id,omitempty" doc:"For a rollback to what was there before"`
	Profile    string               `json:"profile"`
	Targets    []fileset.TargetName `json:"targets"`
	Changes    []fileset.Change     `json:"changes"`
	Summary    fileset.Summary      `json:"summary"`
}

func (s toolDeps) apply() operation.Operation {
	o := readOperation(ToolApply, "Deploy", "Put procedures in place for the agents of this machine",
		"Put the modules in place for Codex, Claude Code, Cursor and VS Code: all of the plan or nothing of it. Call plan "+
			"or diff first, and ask a person. "+
			"Files that were there before are replaced only with adopt: true. snapshot_id is for rollback. With dry_run "+
			"nothing is changed.")
	o.Effect, o.Needs.Yes, o.Tool.Destructive, o.Tool.Repeatable = operation.Write, true, true, true
	way := operation.CallSpec[ApplyRequest]{
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
			p, done, err := service.Apply(ctx, in.plan().planInput(), fileset.Approval{Adopt: in.Adopt}, call.DryRun)
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
func changedMeanwhile(d *fileset.Done) (out []string) {
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
func changed(done *fileset.Done) string { return fault.Count(len(done.Steps), "change", "changes") }

// noteOf returns the audit's note about a deployment or a rollback.
func noteOf(done *fileset.Done) operation.Note {
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

// UpdateRequest names modules.
type UpdateRequest struct {
	Modules []string `json:"modules,omitempty" positional:"true" maxItems:"100" doc:"Ids of modules of other repositories; without any, all that follow a branch or a tag"`
	Yes     bool     `json:"yes,omitempty" default:"false" doc:"Write the lock file; without it, the plan is shown alone"`
	Profile string   `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Machine string   `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
}

// UpdateData says which modules have newer commits, and what a deployment would change with them.
type UpdateData struct {
	Written bool                 `json:"written" doc:"The lock file names the commits now"`
	Lock    string               `json:"lock" doc:"The lock file"`
	Modules []ModuleUpdate       `json:"modules"`
	Targets []fileset.TargetName `json:"targets"`
	Changes []fileset.Change     `json:"changes" doc:"Of a deployment with these commits"`
	Summary fileset.Summary      `json:"summary"`
}

func (s toolDeps) update() operation.Operation {
	o := beside(NameUpdate, "Lock modules of other repositories to their newest commits",
		"Look for the newest commits of the modules of other repositories, and show what a deployment would change with "+
			"them. With yes, the lock file\n"+
			"names these commits from then on. Nothing is deployed: deploy apply does that.")
	o.Effect = operation.Write
	way := operation.CallSpec[UpdateRequest]{
		Timeout: writeTimeout, DryRun: func(in UpdateRequest) bool { return !in.Yes },
		Roots: func(UpdateRequest) []string { return []string{s.service().setup.repo("")} },
		Check: func(in UpdateRequest) *operation.Fault {
			return checkArgumentLengths(map[string]string{"profile": in.Profile, "machine": in.Machine})
		},
	}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in UpdateRequest) (out Envelope[UpdateData], err error) {
			service := s.service()
			ctx, fetched := noting(ctx)
			var note operation.Note
			defer func() { fetched.noteTo(call, note) }()
			u, err := service.Newest(ctx, Request{Profile: in.Profile, Machine: in.Machine}, in.Modules)
			if err != nil {
				return out, faultOf(err)
			}
			plan := dataOf(in.Profile, u.Plan)
			data := UpdateData{Lock: u.lockPath(), Modules: u.Modules, Targets: plan.Targets, Changes: plan.Changes,
				Summary: plan.Summary}
			if !call.DryRun {
				if data.Written, err = service.writeLock(u); err != nil {
					return out, faultOf(err)
				}
			}
			if data.Written {
				for _, m := range u.Modules {
					if m.Newer() {
						note.Message += fmt.Sprintf("%s to %.12s; ", m.Module, m.To)
					}
				}
				if said := service.committed(u); said != "" {
					u.Warnings = append(u.Warnings, said)
				}
			}
			return enveloped(NameUpdate, service.version, data, u.Warnings), nil
		})
}

// Proposal is a request to create_pr's use case, in its own terms.
type Proposal struct {
	Draft
	Title      string
	Body       string
	ChangeType string
}

// Proposed is a pull request that was opened, or would have been.
type Proposed struct {
	Repository string   `json:"repository" doc:"owner/name"`
	Number     int      `json:"number,omitempty"`
	URL        string   `json:"url,omitempty"`
	Branch     string   `json:"branch"`
	Title      string   `json:"title"`
	Files      []string `json:"files" doc:"Of the repository"`
	Reused     bool     `json:"reused,omitempty" doc:"The same change was open already"`
	DryRun     bool     `json:"dry_run,omitempty" doc:"Nothing was written"`
	// Provider is the provider of the pull request, for its page.
	Provider string `json:"provider,omitempty"`
}

// Proposer asks create_pr's use case, with all its gates, in the name of a call. What it refuses is recorded there.
type Proposer func(ctx context.Context, call operation.Call, p Proposal) (out Proposed, warnings []string, err error)

// ProposeRequest names what was changed in targets.
type ProposeRequest struct {
	Paths   []string `json:"paths,omitempty" positional:"true" maxItems:"100" doc:"Files of targets; without any, all that were modified"`
	Title   string   `json:"title,omitempty" maxLength:"72" doc:"Of the pull request; without one, the modules' names"`
	Why     string   `json:"why,omitempty" maxBytes:"16000" doc:"What was observed, and why the change helps; goes into the pull request"`
	Profile string   `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Machine string   `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
}

func (s toolDeps) proposeDrift() operation.Operation {
	o := beside(NamePropose, "Propose what was changed in a target to the repository that it comes from",
		"Make a pull request of files that a person or an agent has changed where they were deployed, to the repository of "+
			"their modules, or of the overlay\n"+
			"that gives them. It is a proposal like all others: create_pr's gates judge it. The pull request says what was "+
			"deployed as its base, so that\n"+
			"nothing newer is overwritten. Files that are missing, or extra in the folder of a skill, are proposed only by "+
			"name. Nothing is changed in a target.")
	o.Effect, o.Needs = operation.Write, operation.Needs{Tier: gitprovider.TierInvestigate, Dry: operation.DryTried,
		OwnGates: true}
	way := operation.CallSpec[ProposeRequest]{Timeout: operation.Unbounded,
		Check: func(in ProposeRequest) *operation.Fault {
			return checkArgumentLengths(map[string]string{"profile": in.Profile, "machine": in.Machine})
		}}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in ProposeRequest) (out Envelope[Proposed], err error) {
			if call.Scopes != nil && !call.Scopes.Has(access.Propose) {
				return out, fault.New(fault.Forbidden, "proposing needs the scope %s", access.Propose)
			}
			service := s.service()
			ctx, fetched := noting(ctx)
			defer func() { fetched.noteTo(call, operation.Note{}) }()
			draft, err := service.draftOf(ctx, Request{Profile: in.Profile, Machine: in.Machine}, in.Paths)
			if err != nil {
				return out, faultOf(err)
			}
			call.Records(func(context.Context, *fault.Error) error { return nil }) // the use case records what it judges
			done, warnings, err := s.propose(ctx, call, proposalOf(draft, in))
			if err != nil {
				return out, toolRefusal(err)
			}
			return enveloped(NamePropose, service.version, done, warnings), nil
		})
}

// toolRefusal returns a refusal of the use case in agentpack's form.
func toolRefusal(err error) error {
	e := fault.From(err)
	details := map[string]any{"reason_code": string(e.Code), "next_actions": []string{"follow_message"}}
	if len(e.Violations) > 0 {
		details["violations"] = e.Violations
	}
	return &operation.Fault{Code: string(ProposalRefused), Details: details, General: e}
}

// maxTitle is the most that a pull request's title may have, in characters.
const maxTitle = 72

func proposalOf(d Draft, in ProposeRequest) Proposal {
	p := Proposal{Draft: d, Title: strings.TrimSpace(in.Title), ChangeType: "fix"}
	if d.Skills {
		p.ChangeType = "skill"
	}
	if p.Title == "" {
		p.Title = "Take over what was changed in " + strings.Join(d.Modules, ", ")
		if len([]rune(p.Title)) > maxTitle {
			p.Title = fmt.Sprintf("Take over what was changed in %d modules", len(d.Modules))
		}
	}
	var b strings.Builder
	if why := strings.TrimSpace(in.Why); why != "" {
		b.WriteString(why + "\n\n")
	}
	b.WriteString(
		"Files were changed where they are deployed. This takes the changes over into what they are deployed from.\n\n| " +
			"file | module | deployed as |\n|---|---|---|\n")
	for _, f := range d.Files {
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` |\n", inCode(f.Path), inCode(f.Module), inCode(f.From))
	}
	p.Body = b.String()
	return p
}

// inCode returns a text for a piece of code in a table.
func inCode(text string) string {
	return strings.NewReplacer("`", "'", "|", "/", "\n", " ").Replace(text)
}
