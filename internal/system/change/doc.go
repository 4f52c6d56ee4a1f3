// Package change puts files of several owners in place, all of them or none, and remembers in one ledger whose each
// file is. A process may be killed at any moment: the next call, of whatever process, ends what it began. It knows
// neither where the files come from nor what they are for.
//
//	e := change.NewEngine(home, time.Now)
//	d := change.NewDesired("packages", workspace, project, target) // owner, source, project, targets
//	d.AddRoot(target, project+"/.claude/skills", project, true)
//	err := d.Add(target, project+"/.claude/skills", "look/SKILL.md", change.TreeFile{Content: text}, "@team/look")
//	plan, err := e.Plan(ctx, d)                                      // what would change; changes nothing
//	plan, done, err := e.Apply(ctx, d, change.Approval{Adopt: true}) // all of it or nothing
//
// A Desired lists all files that its owner wants from its source in the project, for its targets: the owner's other
// files there are removed. To install one more package, list the files of all packages; to remove all, apply a Desired
// without files. A file that another owner has is E_DESIRED_STATE_CONFLICT, a file that was not deployed needs
// Approval.Adopt (E_ADOPT_CONFIRM_REQUIRED has the paths). Every Apply that changes something is a Snapshot, and
// Rollback goes back to one of the same owner. A caller need not lock: the engine does, and finishes or takes back what
// a killed process began before anything else; a sentence about it is in the plan's Warnings.
//
// What is desired may be read with ReadTree, Hashes and a StatCache: then a plan with nothing to change costs what
// asking about its files costs. PlanCache keeps such a plan from one process to the next. All three are caches: nothing
// that is about to be written believes them.
//
// Errors are *Error, with a Code and Details.
package change
