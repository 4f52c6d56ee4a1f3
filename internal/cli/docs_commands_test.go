package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// The commands of claudeops that pages show exist, with their flags.
func TestCommandsOfPagesExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, page := range append(pages, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "SECURITY.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range commandsIn(string(text)) {
			count++
			if problem := unknownIn(command); problem != "" {
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
	for command, known := range map[string]bool{
		"review lift-cooldown": true, "review raise-cooldown": false, "serve --interval 1h": true,
		"serve --interwal 1h": false, "": true,
		"session show ID --events": true, "no": false, "token create --name x --scopes read": true,
		"token create --scope read": false,
	} {
		if problem := unknownIn(command); (problem == "") != known {
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

// unknownIn says which word or flag of a command line is not known, "" if none is.
func unknownIn(command string) string {
	root := (&commandLine{lookup: func(string) (string, bool) { return "", false }}).rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
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
