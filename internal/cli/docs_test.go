package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/api"
)

// The commands of claudeops that pages show exist, with their flags.
func TestCommandsOfPagesExist(t *testing.T) {
	t.Parallel()
	pages := must.Get(filepath.Glob(filepath.Join("..", "..", "docs", "*", "*.md")))(t)
	root, count := allCommands(), 0
	for _, page := range append(pages, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "SECURITY.md")) {
		text := must.Get(os.ReadFile(page))(t)
		for _, command := range commandsIn(string(text)) {
			count++
			if problem := unknownIn(root, command); problem != "" {
				t.Errorf("%s shows `claudeops %s`: %s", filepath.Base(page), command, problem)
			}
		}
	}
	if count < 60 {
		t.Errorf("only %d commands were found", count)
	}
}

func TestACommandThatDoesNotExistIsNoticed(t *testing.T) {
	t.Parallel()
	root := allCommands()
	for command, known := range map[string]bool{
		"review lift-cooldown": true, "review raise-cooldown": false, "serve --interval 1h": true,
		"serve --interwal 1h": false, "": true,
		"session show ID --events": true, "no": false, "token create --name x --scopes read": true,
		"token create --scope read": false,
	} {
		if problem := unknownIn(root, command); (problem == "") != known {
			t.Errorf("%q: %q", command, problem)
		}
	}
}

// commandsIn are the commands of a page, without the name of the program: lines of blocks of sh, and what stands in
// backticks.
func commandsIn(text string) (out []string) {
	inline := regexp.MustCompile("`claudeops ([a-z][^`]*)`")
	line := regexp.MustCompile(`(?m)^(?:[A-Z_]+=\S+ )*(?:sudo )?(?:\S*/)?claudeops ([a-z-][^#|>&;\n]*)`)
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimSpace(m[1]))
	}
	for _, block := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
		for _, m := range line.FindAllStringSubmatch(strings.ReplaceAll(block[1], "\\\n", " "), -1) {
			out = append(out, strings.TrimSpace(m[1]))
		}
	}
	return out
}

// allCommands is the tree of commands, with those that cobra adds when it runs.
func allCommands() *cobra.Command {
	root := (&commandLine{lookup: valuesOf(nil)}).rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
	return root
}

// unknownIn says which word or flag of a command line is not known, "" if none is.
func unknownIn(root *cobra.Command, command string) string {
	words := strings.Fields(regexp.MustCompile(`'[^']*'|"[^"]*"|\[[^\]]*\]`).ReplaceAllString(command, "X"))
	found, rest := root, words
	if len(rest) > 0 && (rest[0] == processtree.ReaperCommand || rest[0] == session.CheckCommand) {
		return "" // Main knows them, and they are for ourselves
	}
	for len(rest) > 1 && strings.HasPrefix(rest[0], "--") { // flags of all commands, which may stand first
		flag := root.PersistentFlags().Lookup(strings.TrimPrefix(rest[0], "--"))
		if flag == nil {
			break
		}
		rest = rest[1:]
		if flag.NoOptDefVal == "" {
			rest = rest[1:]
		}
	}
	for len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && found.HasSubCommands() {
		next := childOf(found, rest[0])
		if next == nil {
			return "there is no command " + rest[0]
		}
		found, rest = next, rest[1:]
	}
	found.InitDefaultHelpFlag()
	for _, word := range rest {
		name, isFlag := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		name = strings.TrimRight(name, ",.;:)")
		if isFlag && name != "" && found.Flags().Lookup(name) == nil && found.InheritedFlags().Lookup(name) == nil {
			return "there is no flag --" + name
		}
	}
	return ""
}

// childOf is the command of a name; a name with a slash is one of several, which are looked for by the first.
func childOf(parent *cobra.Command, name string) *cobra.Command {
	name, _, _ = strings.Cut(strings.TrimRight(name, ",.;:"), "/")
	for _, child := range parent.Commands() {
		if child.Name() == name || child.HasAlias(name) {
			return child
		}
	}
	return nil
}

// docs/reference/commands.md is made from the commands: `make golden` writes it.
func TestThePageOfCommandsIsMadeFromThem(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- Written by `make golden` from the commands in the code; edit those. -->\n\n" +
		"[Use the command line](../guides/command-line.md) says how commands answer.\n\n## Flags of every command\n\n")
	root := Command()
	flagsTable(&b, root.PersistentFlags())
	describeCommands(&b, root)
	operationtest.Golden(t, filepath.Join("..", "..", "docs", "reference", "commands.md"), []byte(b.String()))
}

func describeCommands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		level := "##"
		if parent.HasParent() {
			level = "###"
		}
		fmt.Fprintf(b, "\n%s %s\n\n%s.\n", level, cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
		if cmd.HasSubCommands() {
			describeCommands(b, cmd)
			continue
		}
		fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
		if cmd.Long != "" {
			fmt.Fprintf(b, "\n%s\n", asMarkdown(cmd.Long))
		}
		if cmd.Example != "" {
			fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(cmd.Example[2:], "\n  ", "\n"))
		}
		if cmd.LocalNonPersistentFlags().HasFlags() {
			b.WriteString("\n")
			flagsTable(b, cmd.LocalNonPersistentFlags())
		}
	}
}

// asMarkdown is the text of a help: indented lines are code.
func asMarkdown(text string) string {
	text = regexp.MustCompile(`(?m)^ {4}(\S.*)$`).ReplaceAllString(text, "\n```sh\n$1\n```\n")
	text = strings.ReplaceAll(text, "\n```\n\n\n```sh\n", "\n")
	return strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(text)
}

func flagsTable(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | meaning |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			fmt.Fprintf(b, "| `--%s` | %s |\n", f.Name, strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(f.Usage))
		}
	})
}

func TestThePageOfOperationsIsMadeFromThem(t *testing.T) {
	t.Parallel()
	operationtest.Golden(t, filepath.Join("..", "..", "docs", "reference", "tools.md"),
		operationtest.Docs(append(new(app.App).Toolsets(), api.Toolset(api.Options{}),
			operation.Toolset{Operations: app.Acts(nil)})))
}

// nicerFlags are the flags of commands written by hand that stand for a field of the input under another name. An empty
// one is an argument without a flag.
func nicerFlags() map[string]string {
	return map[string]string{
		"repo_owner": "repo", "repo_name": "repo", "base_branch": "base", "change_type": "type", "files": "create",
		"pr_number":            "",
		"read_file.repo_owner": "", "read_file.repo_name": "", "read_file.path": "",
		"list_files.repo_owner": "", "list_files.repo_name": "", "list_files.glob": "",
		"list_prs.limit": "", "list_prs.after": "", // it reads all pages
		"promote_proposal.id": "",
	}
}

func TestEveryOperationHasItsCommandWithEveryField(t *testing.T) {
	t.Parallel()
	a := &commandLine{}
	root := a.rootCommand()
	for _, o := range operation.List(a.program().Toolsets()...) {
		if o.Command == "" {
			continue
		}
		words := strings.Fields(o.Command)
		cmd, rest, err := root.Find(words)
		if err != nil || len(rest) > 0 || cmd.Name() != words[len(words)-1] {
			t.Errorf("%s: there is no command %q", o.Name, o.Command)
			continue
		}
		for _, f := range operation.Fields(o.Input) {
			nicer, has := nicerFlags()[o.Name+"."+f.JSON]
			if !has {
				nicer, has = nicerFlags()[f.JSON]
			}
			listed := cmd.Flags().Lookup(strings.ReplaceAll(f.JSON, "_", "-")) != nil ||
				has && (nicer == "" || cmd.Flags().Lookup(nicer) != nil)
			if !listed && (scalar(f.Type) || has) {
				t.Errorf("%s: no flag for the field %s of %s", o.Command, f.JSON, o.Name)
			}
		}
	}
}

func scalar(t reflect.Type) bool {
	return slices.Contains([]reflect.Kind{reflect.String, reflect.Int, reflect.Bool}, t.Kind())
}

// actsOfCommands lists for every command what a person does with it. Those of operations are known from these; another
// new command has to be added here, and its effects to TestWhatPeopleDoHasTheSameEffectThroughEveryInterface.
func actsOfCommands() map[string][]string {
	const looks = "" // changes nothing that belongs to others
	all := map[string][]string{
		"review list": {looks}, "review show": {looks},
		"pr create":    {looks}, // a proposal: it passes the gates
		"pr promote":   {looks}, // likewise
		"init":         {looks}, // the operator's own files, and a dry run
		"outcomes":     {looks},
		"session list": {looks}, "session show": {looks}, "session usage": {looks}, "session journal": {looks},
		"backup": {looks}, "serve": {looks}, "mcp-server": {looks}, "demo": {looks},
		"policy show": {looks}, "config show": {looks}, "policy check": {looks}, "policy suggest": {looks},
		"audit list": {looks}, "audit show": {looks}, "audit verify": {looks},
		"deploy init": {looks}, "deploy snapshots": {looks}, // a new configuration alone
		"doctor": {looks}, "health": {looks}, "status": {looks}, "dashboard": {looks},
		"mcp-config": {looks}, "version": {looks},
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
			if o.Command != "" { // internal/operation judges and records what they do
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
	text := must.Get(os.ReadFile("../../docs/explain/people.md"))(t)
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

// docs/reference/configuration.md is made from the list of variables and the flags of the commands: `make golden`
// writes it.
func TestThePageOfConfigurationIsTheListOfVariables(t *testing.T) {
	t.Parallel()
	operationtest.Golden(t, filepath.Join("..", "..", "docs", "reference", "configuration.md"),
		[]byte(configurationPage(t)))
}

// The pages of docs and the README name no variable of ours that does not exist.
func TestPagesNameVariablesThatExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{ // sessions set two of them for their agents, tests read the others
		"CLAUDEOPS_SESSION": true, "CLAUDEOPS_RUN": true, "CLAUDEOPS_TEST_POSTGRES": true, "CLAUDEOPS_CRASH_SEED": true,
		"CLAUDEOPS_AGENT_TOKEN": true, // read by clients, which send it
	}
	for _, section := range config.Sections(forges.All()) {
		for _, v := range section.Variables {
			known[v.Name] = true
			if v.Secret {
				known[v.Name+"_FILE"] = true
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*", "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	signIn := regexp.MustCompile(`^CLAUDEOPS_SIGN_IN_[A-Z0-9]+_([A-Z_]+)$`)
	name := regexp.MustCompile(`\bCLAUDEOPS_[A-Z0-9]+(_[A-Z0-9]+)*\b`)
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		text := must.Get(os.ReadFile(page))(t)
		for _, found := range name.FindAllString(string(text), -1) {
			found = signIn.ReplaceAllString(found, "CLAUDEOPS_SIGN_IN_NAME_$1") // a page shows a provider by its name
			if !known[found] {
				t.Errorf("%s names %s, which nothing reads", filepath.Base(page), found)
			}
		}
	}
}

func configurationPage(t *testing.T) string {
	t.Helper()
	flags := flagsOfVariables(t)
	var b strings.Builder
	b.WriteString("# Configuration\n\n<!-- Made from internal/settings/config by `make golden`; do not edit. -->\n\n" +
		"Every variable that Claude Ops reads: what it is for, what it may be, and what holds without it.\n\n" +
		"A flag comes first, then the variable, then the default. An empty value counts as unset, and so does a " +
		"placeholder such as\n" +
		"`${CLAUDEOPS_TIER}` that a client has not replaced. A value that cannot be understood is replaced by the most " +
		"careful choice, with a warning,\n" +
		"or stops the command that needs it; `claudeops doctor` shows both.\n\n" +
		"## The environment file\n\n" +
		"Every command reads `~/.config/claudeops/environment` (`$XDG_CONFIG_HOME/claudeops/environment`), or the file " +
		"that `--env-file` names, for what\n" +
		"the environment lacks. On Windows it is `%APPDATA%\\claudeops\\environment`. `claudeops init` writes it.\n" +
		"Lines are `NAME=VALUE`; blank lines and lines that begin with " +
		"`#` do not count. Only you may\n" +
		"read the file (`chmod 600`): while others can, or a line is malformed, every command ends with exit code 2.\n\n" +
		"## Reading the tables\n\n" +
		"**Secrets.** Where a row names a second variable that ends in `_FILE`, the secret may be in the file that it " +
		"names instead. Such a value is\n" +
		"refused in every proposal, and is never shown in an answer, a log line or a record.\n\n" +
		"**MCP.** *yes* means that the server that an agent's client starts reads the variable, so that `claudeops " +
		"mcp-config` passes it on.\n")
	for _, section := range config.Sections(forges.All()) {
		fmt.Fprintf(&b,
			"\n## %s\n\n%s\n\n| variable | meaning | values | default | flag | MCP |\n|---|---|---|---|---|---|\n",
			section.Title, section.Text)
		for _, v := range section.Variables {
			names, mcp := "`"+v.Name+"`", ""
			if v.Secret {
				names += ", `" + v.Name + "_FILE`"
			}
			if v.Server {
				mcp = "yes"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", names, inCell(v.Meaning), inCell(v.Values), asCode(v.Default),
				flags[v.Name], mcp)
		}
	}
	return b.String()
}

// inCell is a text in a cell of a Markdown table; what begins with a capital variable or holds a star is code.
func inCell(text string) string {
	text = strings.ReplaceAll(text, "|", `\|`)
	return regexp.MustCompile(
		`\$?[A-Z][A-Z]+_[A-Z_]+(/[a-z]+)?|[a-z]+/\*|\d:Bash\([^)]*\)|Bash\([^)]*\)|postgres://\S+`).ReplaceAllString(text,
		"`$0`")
}

func asCode(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// flagsOfVariables maps each variable to the flag whose description names it, and the commands that have it if not all
// do.
func flagsOfVariables(t *testing.T) map[string]string {
	t.Helper()
	a := &commandLine{lookup: valuesOf(nil)}
	root := a.rootCommand()
	variable := regexp.MustCompile(`\((CLAUDEOPS_[A-Z_]+)\)`)
	of, commands := map[string]string{}, map[string][]string{}
	visit := func(command string) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			if m := variable.FindStringSubmatch(f.Usage); m != nil {
				of[m[1]] = "`--" + f.Name + "`"
				if command != "" {
					commands[m[1]] = append(commands[m[1]], "`"+command+"`")
				}
			}
		}
	}
	root.PersistentFlags().VisitAll(visit(""))
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			child.LocalNonPersistentFlags().VisitAll(visit(strings.TrimPrefix(child.CommandPath(), "claudeops ")))
			walk(child)
		}
	}
	walk(root)
	for name := range a.flags {
		if of[name] == "" {
			t.Errorf("the flag for %s does not name it in its description, as (%s)", name, name)
		}
	}
	for name, having := range commands {
		of[name] += " of " + strings.Join(having, ", ")
	}
	return of
}

func TestTheVersionIsTheTag(t *testing.T) {
	t.Parallel()
	stamped := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}
	for given, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1", "v1.2.3+dirty": "1.2.3+dirty",
		"":                                       app.Release + "+0123456789ab",
		"(devel)":                                app.Release + "+0123456789ab",
		"v0.0.0-20261122135039-0123456789ab":     app.Release + "+0123456789ab",
		"v1.2.4-0.20261122135039-0123456789ab":   app.Release + "+0123456789ab",
		"v1.2.4-rc.0.20261122135039-012345678ab": app.Release + "+0123456789ab",
	} {
		if got := app.VersionOf(&debug.BuildInfo{Main: debug.Module{Version: given}, Settings: stamped}); got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
	if got := app.VersionOf(&debug.BuildInfo{}); got != app.Release {
		t.Errorf("without a stamp: %s", got)
	}
}

// The newest part of the changelog is about the version of the source.
func TestTheChangelogBeginsWithTheVersionOfTheSource(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md")))(t)
	first := regexp.MustCompile(`(?m)^## (\S+), (unreleased|\d{4}-\d\d-\d\d)$`).FindSubmatch(text)
	if first == nil || string(first[1]) != app.Release {
		t.Errorf("CHANGELOG.md begins with %q, the source is %s", first, app.Release)
	}
}
