package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/app"
)

// describeHelp sorts the commands of the root into groups, says what groups of commands are for, and gives examples to
// commands that have none.
func describeHelp(root *cobra.Command) {
	for _, g := range helpGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range root.Commands() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.id
			}
		}
	}
	root.SetHelpCommandGroupID("setup")
	root.SetCompletionCommandGroupID("setup")
	shorts, examples := groupShorts(), commandExamples()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := pathOf(cmd)
		if short := shorts[path]; short != "" {
			cmd.Short = short
		}
		if example := examples[path]; cmd.Example == "" && example != "" {
			cmd.Example = "  claudeops " + strings.ReplaceAll(example, "\n", "\n  claudeops ")
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(root)
}

// helpWidth is the width of the paragraphs of a help text, in characters.
const helpWidth = 80

// reflowHelp breaks the lines of all help texts anew. A command that runs needs at most the text of one: see wrapHelp.
func reflowHelp(cmd *cobra.Command) {
	cmd.Long = reflow(cmd.Long, helpWidth)
	for _, below := range cmd.Commands() {
		reflowHelp(below)
	}
}

// reflow breaks the lines of paragraphs anew, so that none is wider than so many columns. Indented lines stay as they
// are.
func reflow(text string, columns int) string {
	var lines, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			lines = append(lines, fold(strings.Join(paragraph, " "), columns)...)
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' {
			paragraph = append(paragraph, strings.TrimSpace(line))
			continue
		}
		end()
		lines = append(lines, line)
	}
	end()
	return strings.Join(lines, "\n")
}

// wrapHelp has help texts end their lines where the terminal does.
func wrapHelp(a *commandLine, root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		s := surfaceOf(a, a.streams.Out)
		columns := helpWidth
		if s.width > 0 {
			columns = min(s.width, helpWidth)
		}
		cmd.Long = reflow(cmd.Long, columns)
		var text strings.Builder
		cmd.SetOut(&text)
		show(cmd, args)
		cmd.SetOut(nil) // that of the root again
		if cmd == root {
			cmd.SetOut(a.streams.Out)
		}
		fmt.Fprint(a.streams.Out, s.wrap(text.String()))
	})
}

// wrap continues lines that are wider than the terminal in the next one, below their last column. Examples stay as they
// are typed. Titles are bold.
func (s surface) wrap(text string) string {
	var out strings.Builder
	example := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		isTitle := line != "" && line[0] != ' ' && strings.HasSuffix(line, ":")
		if isTitle {
			example = line == "Examples:"
		}
		indent := hangingIndent(line)
		if example || s.width == 0 || displayWidth(line) <= s.width || indent > s.width-minHelp {
			out.WriteString(s.paint(line, isTitle, true) + "\n")
			continue
		}
		for i, part := range fold(line[indent:], s.width-indent) {
			if i == 0 {
				out.WriteString(line[:indent] + part + "\n")
				continue
			}
			out.WriteString(strings.Repeat(" ", indent) + part + "\n")
		}
	}
	return out.String()
}

// minHelp is the minimum width of the last column of a help text that is wrapped.
const minHelp = 16

// hangingIndent returns where the last column of a line of help begins, which are all of one byte before it.
func hangingIndent(line string) int {
	text := strings.TrimLeft(line, " ")
	start := len(line) - len(text)
	if start == 0 {
		return 0
	}
	if at := strings.Index(text, "   "); at >= 0 { // behind the name of a command or flag
		start += at + len(text[at:]) - len(strings.TrimLeft(text[at:], " "))
	}
	return start
}

// helpGroup is a part of the list of commands.
type helpGroup struct {
	id, title string
	commands  []string
}

func helpGroups() []helpGroup {
	return []helpGroup{
		{"setup", "Set it up:", []string{"init", "doctor", "config", "mcp-config", "demo", "version"}},
		{"changes", "Propose and review changes:", []string{"pr", "review", "policy", "sources"}},
		{"agents", "Run and watch agents:", []string{"run", "session", "connections", "mcp-server"}},
		{"server", "Serve people and programs, and keep the records:",
			[]string{"serve", "status", "dashboard", "health", "token", "login", "audit", "outcomes", "backup", "prune", "pause",
				"resume"}},
		{"toolsets", "Share and run procedures (each is a toolset that CLAUDEOPS_TOOLSETS switches on):",
			[]string{"definitions", "packages", "deploy", "scripts"}},
	}
}

// groupShorts say what commands are for that only hold others.
func groupShorts() map[string]string {
	return map[string]string{
		"definitions":        "List, check and compare definitions of agents and tools",
		"definitions agent":  "List, show and check agents",
		"definitions skill":  "List, show and check skills",
		"definitions tool":   "List, show and check tools",
		"definitions plugin": "List, show and search plugins",
		"definitions config": "Show the configuration and its registries",
		"definitions cache":  "Show and clear the cache of registries",
		"definitions fork":   "List forks, and compare them with their upstream",
		"login":              "List the browsers that have signed in, and end their logins",
		"packages":           "Make, publish and install packages of procedures",
		"packages config":    "Show and change the configuration of packages",
		"packages registry":  "Add and list registries of packages",
	}
}

// commandExamples returns examples without the name of the program.
func commandExamples() map[string]string {
	return map[string]string{
		"audit list":       "audit list\naudit list --repo joe/home-cluster --outcome refused --limit 20",
		"audit show":       "audit show 17",
		"audit verify":     "audit verify\naudit verify --heads kept.jsonl --pulls",
		"backup":           "backup ~/claudeops-2026-11-25",
		"config show":      "config show\nconfig show --all",
		"connections list": "connections list",
		"connections cut":  "connections cut 01M81EQV51VWSKBPTDJXEVK0KR",
		"dashboard":        "dashboard",
		"demo":             "demo\ndemo --serve --dir /tmp/demo",
		"doctor":           "doctor\ndoctor --online --repo joe/home-cluster",
		"health":           "health",
		"login end":        "login end 01M81EQV51VWSKBPTDJXEVK0KR",
		"login list":       "login list",
		"mcp-config":       "mcp-config > mcp.json\nmcp-config --client codex >> ~/.codex/config.toml",
		"mcp-server":       "mcp-server\nmcp-server --as fractary-forge",
		"policy show":      "policy show",
		"pr diff":          "pr diff 7 --repo joe/home-cluster",
		"pr file":          "pr file joe/home-cluster checks/disk.md\npr file joe/home-cluster checks/disk.md --pull 7",
		"pr list": "pr list --repo joe/home-cluster\npr list --repo joe/home-cluster --state-of-review " +
			"changes_requested",
		"pr resume":              "pr resume",
		"pr status":              "pr status 7 --repo joe/home-cluster",
		"prune":                  "prune --older-than 180d --dry-run\nprune --older-than 180d",
		"review approve":         "review approve 7 --repo joe/home-cluster --comment 'Good.'",
		"review close":           "review close 7 --repo joe/home-cluster --comment 'The check is there already.'",
		"review comment":         "review comment 7 --repo joe/home-cluster --line 'checks/disk.md:12:Why 80 %?'",
		"review lift-cooldown":   "review lift-cooldown 7 --repo joe/home-cluster",
		"review list":            "review list --repo joe/home-cluster --state all",
		"review merge":           "review merge 7 --repo joe/home-cluster",
		"review request-changes": "review request-changes 7 --repo joe/home-cluster --comment 'Say which disk.'",
		"review show":            "review show 7 --repo joe/home-cluster",
		"run":                    "run --tier 1\nrun --tier 2 --note 'The backup of last night took twice as long.'",
		"serve":                  "serve\nserve --addr 127.0.0.1:9000 --interval 1h",
		"session journal":        "session journal",
		"session list":           "session list",
		"session show":           "session show 01M81EQV51VWSKBPTDJXEVK0KR --events",
		"session stop":           "session stop 01M81EQV51VWSKBPTDJXEVK0KR",
		"session usage":          "session usage --days 30",
		"sources allow":          "sources allow https://registry.example.org",
		"sources list":           "sources list",
		"sources remove":         "sources remove https://registry.example.org",
		"status":                 "status\nstatus --json",
		"token create":           "token create --name ann --max-tier 2 --scopes propose,review,read",
		"token list":             "token list",
		"token revoke":           "token revoke ann",
		"version":                "version",
	}
}

// wrongArguments says how many arguments a command takes, by the words of its usage.
func wrongArguments(cmd *cobra.Command, args []string) error {
	_, takes, _ := strings.Cut(strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.CommandPath())
	takes = strings.TrimSpace(takes)
	if strings.HasPrefix(takes, "--") { // a flag is not an argument
		takes = ""
	}
	switch {
	case takes == "":
		return app.Usage(fmt.Errorf("%s takes no arguments; leave %q out", cmd.CommandPath(), args[0]))
	case len(args) == 0:
		return app.Usage(fmt.Errorf("%s needs %s", cmd.CommandPath(), takes))
	case len(args) > len(strings.Fields(takes)):
		return app.Usage(fmt.Errorf("%s takes %s and nothing more; leave %q out", cmd.CommandPath(), takes,
			args[len(strings.Fields(takes))]))
	}
	return app.Usage(errors.New(cmd.CommandPath() + " needs " + takes + ", all of them"))
}

// noSuchCommand refuses words after a command that only holds others, and says which of them may have been meant.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	return app.Usage(fmt.Errorf("%s%s", text, meant(cmd.SuggestionsFor(args[0]))))
}

// wrongFlag returns an error about the flags, with the one that may have been meant.
func wrongFlag(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return app.Usage(err)
	}
	var near []string
	closest := 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		switch d := levenshtein.ComputeDistance(name, f.Name); {
		case d < closest:
			near, closest = []string{"--" + f.Name}, d
		case d == closest && d < 3 || len(name) > 2 && strings.HasPrefix(f.Name, name):
			near = append(near, "--"+f.Name)
		}
	})
	return app.Usage(fmt.Errorf("unknown flag: --%s%s", name, meant(near)))
}

func meant(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(words, " or ") + "?"
}
