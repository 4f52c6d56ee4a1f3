// Package deploy puts an operator's procedures in place for the agents of this machine, in the formats of agentpack: modules of a
// configuration repository become files of Codex, Claude Code, Cursor and VS Code. It sees drift, and rolls back
// (docs/deploy.md).
//
// It has two halves. Setup reads agentpack.yaml, selects modules, applies overlays and renders for each target the files that should be
// there: a Desired. Engine puts a Desired in place, whoever made it, and remembers in one ledger whose each file is:
//
//	e := deploy.NewEngine(agentpackHome, time.Now)
//	d := deploy.NewDesired("packages", workspace, project, deploy.ClaudeCode) // owner, source, project, targets
//	d.AddRoot(deploy.ClaudeCode, project+"/.claude/skills", project, true)
//	err := d.Add(deploy.ClaudeCode, project+"/.claude/skills", "look/SKILL.md", deploy.TreeFile{Content: deploy.Bytes(text)}, "@team/look")
//	plan, err := e.Plan(ctx, d)                                      // what would change; changes nothing
//	plan, done, err := e.Apply(ctx, d, deploy.Approval{Adopt: true}) // all of it or nothing
//
// A Desired is all that its owner wants from its source in the project, for its targets: what the owner had there beyond it is removed. To
// install one package more, want the files of all; to remove all, apply a Desired without files. A file that another owner has is
// E_DESIRED_STATE_CONFLICT, a file that nobody has put in place needs Approval.Adopt (E_ADOPT_CONFIRM_REQUIRED has the paths). Every Apply
// that changes something is a Snapshot, and Rollback goes back to one of the same owner. A caller need not lock: the engine does, and
// finishes or takes back what a killed process began before anything else; a sentence about it is in the plan's Warnings.
// Errors are *Error, with a Code and Details.
package deploy
