package cli

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/people"
)

// acts says of every command what a person does with it. A new command has to be added here, and what it does to
// TestWhatPeopleDoHasTheSameEffectThroughEveryInterface.
func acts() map[string][]people.Action {
	const looks = people.Action("") // changes nothing that belongs to others
	all := map[string][]people.Action{
		"review approve": {people.Approve}, "review request-changes": {people.RequestChanges}, "review comment": {people.Comment},
		"review merge": {people.Merge}, "review close": {people.Close}, "review lift-cooldown": {people.LiftCooldown}, "review list": {looks}, "review show": {looks},
		"pr create": {looks}, // a proposal: it passes the gates
		"pr list":   {looks}, "pr status": {looks}, "pr resume": {people.Resume},
		"run": {people.StartSession}, "session list": {looks}, "session stop": {people.StopSession}, "session show": {looks}, "session usage": {looks}, "session journal": {looks},
		"connections list": {looks}, "connections cut": {people.CutConnection},
		"token create": {people.CreateToken}, "token revoke": {people.RevokeToken}, "token list": {looks},
		"prune": {people.Prune}, "backup": {looks},
		"serve": {people.Prune}, "mcp-server": {looks}, "demo": {looks},
		"policy show": {looks}, "policy check": {looks}, "audit list": {looks}, "audit show": {looks}, "audit verify": {looks},
		"deploy init": {looks}, "deploy snapshots": {looks}, "deploy prune": {looks}, // a new configuration alone; snapshots of one's own
		"doctor": {looks}, "health": {looks}, "mcp-config": {looks}, "version": {looks}, "man": {looks},
		"scripts show": {looks}, "scripts output": {looks}, "scripts run": {looks}, // internal/toolset judges and records the run
	}
	for _, set := range new(app).ownToolsets() {
		for _, o := range set.Operations {
			if set.Form != nil && o.Command != "" { // internal/toolset judges and records what they do
				all[o.Command] = []people.Action{looks}
			}
		}
	}
	return all
}

func TestEveryCommandSaysWhatAPersonDoesWithIt(t *testing.T) {
	known := acts()
	root := (&app{}).rootCommand()
	seen := map[string]bool{}
	var walk func(path string, cmd *cobra.Command)
	walk = func(path string, cmd *cobra.Command) {
		if len(cmd.Commands()) == 0 && path != "" {
			seen[path] = true
			if known[path] == nil {
				t.Errorf("the command %q is not in acts()", path)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(join(path, sub.Name()), sub)
		}
	}
	walk("", root)
	var done []people.Action
	for path, actions := range known {
		if !seen[path] {
			t.Errorf("there is no command %q", path)
		}
		done = append(done, actions...)
	}
	for _, rule := range people.Rules() {
		if rule.Action != people.Review && rule.Action != people.RollBack && !slices.Contains(done, rule.Action) {
			t.Errorf("no command does %s", rule.Action)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + " " + name
}
