package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/settings/config"
)

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
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
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
		"the environment lacks. `claudeops init` writes it. Lines are `NAME=VALUE`; blank lines and lines that begin with " +
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
	a := &commandLine{lookup: func(string) (string, bool) { return "", false }}
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
