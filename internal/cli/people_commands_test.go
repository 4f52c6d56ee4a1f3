package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/review"
)

// actsOfCommands lists for every command what a person does with it. A new command has to be added here, and its
// effects to TestWhatPeopleDoHasTheSameEffectThroughEveryInterface.
func actsOfCommands() map[string][]string {
	const looks = "" // changes nothing that belongs to others
	all := map[string][]string{
		"review list": {looks}, "review show": {looks},
		"pr create":  {looks}, // a proposal: it passes the gates
		"pr promote": {looks}, // likewise
		"init":       {looks}, // the operator's own files, and a dry run
		"pr list":    {looks}, "pr status": {looks}, "pr file": {looks}, "pr files": {looks}, "pr diff": {looks},
		"session list": {looks}, "session show": {looks}, "session usage": {looks}, "session journal": {looks},
		"backup": {looks}, "serve": {looks}, "mcp-server": {looks}, "demo": {looks},
		"policy show": {looks}, "config show": {looks}, "policy check": {looks}, "audit list": {looks}, "audit show": {looks},
		"audit verify": {looks},
		"deploy init":  {looks}, "deploy snapshots": {looks}, // a new configuration alone
		"doctor": {looks}, "health": {looks}, "mcp-config": {looks}, "version": {looks},
		// internal/operation judges and records the run
		"scripts show": {looks}, "scripts output": {looks}, "scripts run": {looks},
	}
	for _, verb := range review.Verbs() {
		all["review "+verb.Name] = []string{verb.Action}
	}
	for _, o := range app.Acts(nil) {
		if o.Command != "" {
			all[o.Command] = []string{o.Action} // "" for what only reads
		}
	}
	for _, set := range new(app.App).Toolsets() {
		for _, o := range set.Operations {
			if set.Form != nil && o.Command != "" { // internal/operation judges and records what they do
				all[o.Command] = []string{looks}
			}
		}
	}
	return all
}

func TestEveryCommandSaysWhatAPersonDoesWithIt(t *testing.T) {
	t.Parallel()
	known := actsOfCommands()
	root := (&commandLine{}).rootCommand()
	seen := map[string]bool{}
	var walk func(path string, cmd *cobra.Command)
	walk = func(path string, cmd *cobra.Command) {
		if len(cmd.Commands()) == 0 && path != "" {
			seen[path] = true
			if known[path] == nil {
				t.Errorf("the command %q is not in actsOfCommands()", path)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(join(path, sub.Name()), sub)
		}
	}
	walk("", root)
	var done []string
	for path, actions := range known {
		if !seen[path] {
			t.Errorf("there is no command %q", path)
		}
		done = append(done, actions...)
	}
	for _, rule := range rulesOfPeople() {
		if rule.Action != "deploy.rollback" && !slices.Contains(done, rule.Action) {
			t.Errorf("no command does %s", rule.Action)
		}
	}
}

// ruleOfPeople lists the needs of one act.
type ruleOfPeople struct {
	Action string
	Needs  operation.Needs
}

// rulesOfPeople are those of all acts of people.
func rulesOfPeople() (rules []ruleOfPeople) {
	for _, verb := range review.Verbs() {
		rules = append(rules, ruleOfPeople{Action: verb.Action, Needs: review.NeedsOf(verb.Name)})
	}
	for _, o := range app.Acts(nil) {
		same := func(r ruleOfPeople) bool { return r.Action == o.Action }
		if o.Effect != operation.Read && !slices.ContainsFunc(rules, same) {
			rules = append(rules, ruleOfPeople{Action: o.Action, Needs: o.Needs})
		}
	}
	return rules
}

// TestTheDocumentationHasEveryRule compares docs/explain/people.md with the rules.
func TestTheDocumentationHasEveryRule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/explain/people.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) == 10 {
			rows[strings.Trim(cells[1], " `")] = cells[5:9]
		}
	}
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	for _, rule := range rulesOfPeople() {
		row := rows[rule.Action]
		if len(row) != 4 {
			t.Errorf("%s has no row", rule.Action)
			continue
		}
		for i, want := range []bool{rule.Needs.Policy, rule.Needs.Listed, rule.Needs.Writable,
			rule.Needs.Dry == operation.DryRefused} {
			if got := strings.TrimSpace(row[i]); got != yes(want) {
				t.Errorf("%s, column %d: %s, want %s", rule.Action, i+5, got, yes(want))
			}
		}
		delete(rows, rule.Action)
	}
	for name := range rows {
		if name != "action in the audit" && !strings.HasPrefix(name, "-") {
			t.Errorf("there is no rule for %s", name)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + " " + name
}
