package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli"
)

// notRun are the beginnings of lines that no script runs from the page, and why. TestCommandsOfPagesExist looks up
// those of claudeops in its tree of commands all the same.
func notRun() map[string]string {
	const (
		network  = "needs the network"
		system   = "changes the system, as root"
		engine   = "needs a container engine; internal/testkit/deploytest and e2e hold what it uses"
		stays    = "stays until Ctrl-C; serve.txtar starts it"
		stdio    = "speaks MCP until its client goes; mcpserver.txtar and toolsets.txtar start it"
		client   = "needs the agent's program; e2e starts it"
		makefile = "CI runs it, or what it runs"
	)
	return map[string]string{
		"git clone https://github.com/": network, "cosign ": network, "--certificate-": network, "sha256sum ": network,
		"docker ":      engine,
		"--build-arg ": engine, "--random-password": engine, "--scopes write:repository": engine, "kubectl ": engine,
		"cp .env.example .env ": engine, "deploy/secrets.sh ": engine, "mkdir -p repos ": engine,
		"cp -r deploy/kubernetes": engine, "$EDITOR ": engine,
		"sudo ": system, "-E CLAUDEOPS_STATE_DIR=": system, "make ": makefile, "GITHUB_TOKEN=... ": network,
		"claude ": client,
		"eval \"$(claudeops mcp-config --client gemini": client, "claudeops serve": stays,
		"claudeops demo --life": "runs for long; e2e plays it", "tar -xzf claudeops_VERSION": "needs a release; deploy/packages/archives.sh unpacks one",
		"claudeops mcp-server": stdio,
		"CLAUDEOPS_TOOLSETS=pr,definitions claudeops mcp-server": stdio,
		"CLAUDEOPS_TOOLSETS=pr,scripts claudeops mcp-server":     stdio,
	}
}

// whyNotRun is the reason of a line that is not run, "" for one that is.
func whyNotRun(line string) (beginning, why string) {
	for beginning, why := range notRun() {
		if strings.HasPrefix(strings.TrimSpace(line), beginning) {
			return beginning, why
		}
	}
	return "", ""
}

// blocksOf are the blocks of commands of a page.
func blocksOf(t interface{ Fatal(...any) }, page string) (out []string) {
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(string(text), -1) {
		if !strings.HasPrefix(m[1], "#!") { // a file, and no commands
			out = append(out, m[1])
		}
	}
	return out
}

// runPage runs a block of a page as a reader does, by bash, without the lines of notRun: page PAGE TEXT [OLD=>NEW...].
// TEXT is of that block alone; OLD is a placeholder for which readers have a value of their own.
func runPage(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: page PAGE TEXT [OLD=>NEW...]")
	}
	var found []string
	for _, block := range blocksOf(fatal{ts}, args[0]) {
		if strings.Contains(block, args[1]) {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		ts.Fatalf("%d blocks of %s have %q", len(found), args[0], args[1])
	}
	lines := slices.DeleteFunc(strings.Split(found[0], "\n"), func(line string) bool {
		_, why := whyNotRun(line)
		return why != ""
	})
	text := strings.Join(lines, "\n")
	for _, arg := range args[2:] {
		old, replacement, ok := strings.Cut(arg, "=>")
		if !ok || old == "" || !strings.Contains(text, old) {
			ts.Fatalf("%q is not in the block", old)
		}
		text = strings.ReplaceAll(text, old, replacement)
	}
	if err := ts.Exec("bash", "-euc", text); (err != nil) != neg {
		ts.Fatalf("%v, of\n%s", err, text)
	}
}

// exampleNotRun are examples of commands that no script runs as they stand, and why.
func exampleNotRun() map[string]string {
	const (
		network = "needs the forge that it names; init.txtar and init_asks.txtar do the same"
		asks    = "asks at a terminal; deploy.txtar answers beforehand"
		running = "needs an agent or a browser that is there now; agent_connections_test.go and sessions.txtar have them"
		merged  = "needs a configuration in a repository; deploy_propose.txtar has one"
		fetched = "needs a registry of definitions with forks and plugins; internal/procedures/definitions has one"
	)
	return map[string]string{
		"claudeops init": network, "claudeops demo": "runs for long; make demo and e2e play it",
		"claudeops serve": "stays until Ctrl-C; serve.txtar starts it", "claudeops deploy apply\n": asks,
		"claudeops session stop": running, "claudeops connections cut": running, "claudeops login end": running,
		"claudeops deploy propose": merged, "claudeops deploy update": merged,
		"claudeops definitions fork ": fetched, "claudeops definitions plugin info": fetched,
		"claudeops definitions config get": fetched,
	}
}

// examplesOf are the lines of a command's example, each with a line break at its end.
func examplesOf(cmd *cobra.Command) (lines []string) {
	for line := range strings.SplitSeq(strings.ReplaceAll(cmd.Example, "\\\n", ""), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line+"\n")
		}
	}
	return lines
}

func whyExampleNotRun(line string) (beginning, why string) {
	for beginning, why := range exampleNotRun() {
		if strings.HasPrefix(line, beginning) {
			return beginning, why
		}
	}
	return "", ""
}

// runExample runs the example that the help of a command shows, by bash: example COMMAND [OLD=>NEW...]. OLD is a
// placeholder for which readers have a value of their own.
func runExample(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg {
		ts.Fatalf("usage: example COMMAND [OLD=>NEW...]")
	}
	cmd, _, err := cli.Command().Find(strings.Fields(args[0]))
	ts.Check(err)
	text := ""
	for _, line := range examplesOf(cmd) {
		if _, why := whyExampleNotRun(line); why == "" {
			text += line
		}
	}
	for _, arg := range args[1:] {
		old, replacement, ok := strings.Cut(arg, "=>")
		if !ok || old == "" || !strings.Contains(text, old) {
			ts.Fatalf("%q is not in the example", old)
		}
		text = strings.ReplaceAll(text, old, replacement)
	}
	if err := ts.Exec("bash", "-euxc", text); err != nil {
		ts.Fatalf("%v, of\n%s", err, text)
	}
}

// Every example of every command is run by a script of testdata/script, or stands in exampleNotRun.
func TestEveryExampleIsRun(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/script/examples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	run, used, lines := map[string]bool{}, map[string]bool{}, 0
	for _, m := range regexp.MustCompile(`(?m)^example '([^']+)'`).FindAllStringSubmatch(string(script), -1) {
		run[m[1]] = true
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			visit(below)
		}
		for _, line := range examplesOf(cmd) {
			lines++
			if beginning, why := whyExampleNotRun(line); why != "" {
				used[beginning] = true
			} else if path := strings.TrimPrefix(cmd.CommandPath(), "claudeops "); !run[path] {
				t.Errorf("examples.txtar has no example '%s', which shows %s", path, line)
			}
		}
	}
	visit(cli.Command())
	for beginning := range exampleNotRun() {
		if !used[beginning] {
			t.Errorf("exampleNotRun has %q, which no command shows", beginning)
		}
	}
	if lines < 100 {
		t.Errorf("only %d lines were found", lines)
	}
}

// fatal is a script where a test is wanted.
type fatal struct{ ts *testscript.TestScript }

func (f fatal) Fatal(args ...any) { f.ts.Fatalf("%v", args) }

// Every command that the tutorials, the guides and README show is run by a script of testdata/script, from the page, or
// stands in notRun.
func TestEveryCommandOfThePagesIsRun(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	var all strings.Builder
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	runs := regexp.MustCompile(`(?m)^(?:! )?page (\S+) (?:'([^']+)'|(\S+))`).FindAllStringSubmatch(all.String(), -1)
	used, lines := map[string]bool{}, 0
	for _, page := range pagesWithCommands(t) {
		for _, block := range blocksOf(t, page) {
			isRun := slices.ContainsFunc(runs, func(run []string) bool {
				return run[1] == page && strings.Contains(block, run[2]+run[3])
			})
			for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
				lines++
				if beginning, why := whyNotRun(line); why != "" {
					used[beginning] = true
				} else if !isRun && strings.TrimSpace(line) != "" {
					t.Errorf("%s: no script of testdata/script runs %q; add `page %s ...`, or a reason to notRun", page, line, page)
				}
			}
		}
	}
	for beginning := range notRun() {
		if !used[beginning] {
			t.Errorf("notRun has %q, which stands on no page", beginning)
		}
	}
	if lines < 100 {
		t.Errorf("only %d lines were found", lines)
	}
}

func pagesWithCommands(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md"}
	for _, folder := range []string{"tutorials", "guides"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "docs", folder, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatal(folder, err)
		}
		for _, path := range found {
			out = append(out, "docs/"+folder+"/"+filepath.Base(path))
		}
	}
	return out
}
