package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// Every command but those of completion says by an example how it is used, and the example is a command that exists.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	root, examples := allCommands(), 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
		if cmd.HasSubCommands() {
			if cmd.Short == "" || strings.HasPrefix(cmd.Short, "Commands of") {
				t.Errorf("%s does not say what it is for", cmd.CommandPath())
			}
			return
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(cmd.Example, "\\\n", " "), "\n") {
			command, isOurs := strings.CutPrefix(strings.TrimSpace(line), "claudeops ")
			if !isOurs {
				continue
			}
			examples++
			command, _, _ = strings.Cut(command, " #")
			if problem := unknownIn(root, strings.FieldsFunc(command,
				func(r rune) bool { return strings.ContainsRune("<>|", r) })[0]); problem != "" {
				t.Errorf("%s shows %s: %s", cmd.CommandPath(), command, problem)
			}
			if pathOf(cmd) != "pr promote" && !strings.Contains(command, pathOf(cmd)) && cmd.HasParent() {
				t.Errorf("%s shows another command: %s", cmd.CommandPath(), command)
			}
		}
	}
	visit(Command())
	if examples < 50 {
		t.Errorf("only %d examples", examples)
	}
}

// The paragraphs of help fit a terminal of 80 columns; examples in them stand as they are typed.
func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	read := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for line := range strings.SplitSeq(cmd.Long, "\n") {
			read++
			if n := len([]rune(line)); n > helpWidth && !strings.HasPrefix(line, " ") {
				t.Errorf("%s: %d characters: %q", cmd.CommandPath(), n, line)
			}
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(Command())
	if read < 200 {
		t.Errorf("only %d lines", read)
	}
}

// A line of help goes on below its own column; what is typed stays in one.
func TestHelpWrapsAtTheWidthOfTheTerminal(t *testing.T) {
	t.Parallel()
	text := "A sentence that is long.\n\nExamples:\n  claudeops pr create --title 'A long title'\n\n" +
		"Flags:\n      --json   an answer in JSON for all\n"
	want := "A sentence that is\nlong.\n\nExamples:\n  claudeops pr create --title 'A long title'\n\n" +
		"Flags:\n      --json   an answer in JSON for all\n"
	if got := (surface{width: 20}).wrap(text); got != want {
		t.Errorf("at 20:\n%s", got)
	}
	want = strings.Replace(text, "JSON for", "JSON\n               for", 1)
	if got := (surface{width: 33}).wrap(text); got != want {
		t.Errorf("at 33:\n%s", got)
	}
	if got := (surface{colour: true}).wrap(text); !strings.Contains(got, "\x1b[1mFlags:\x1b[0m\n      --json   an") {
		t.Errorf("without a terminal:\n%q", got)
	}
}

// Every flag says what it is for, and so does every parameter of a tool.
func TestEveryFlagAndEveryParameterHasADescription(t *testing.T) {
	t.Parallel()
	flags, parameters := 0, 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if flags++; len(strings.Fields(f.Usage)) < 2 {
					t.Errorf("%s --%s says %q", cmd.CommandPath(), f.Name, f.Usage)
				}
			})
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	a := &commandLine{lookup: valuesOf(nil)}
	visit(a.rootCommand())
	for _, o := range operation.List(a.program().Toolsets()...) {
		if o.Input == nil {
			continue
		}
		var look func(name string, in reflect.Type)
		look = func(name string, in reflect.Type) {
			for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice {
				in = in.Elem()
			}
			if in.Kind() != reflect.Struct {
				return
			}
			for _, f := range operation.Fields(in) {
				if f.JSON == "" { // embedded: its fields are those of the whole
					look(name, f.Type)
					continue
				}
				if parameters++; len(strings.Fields(f.Tag.Get("doc"))) < 2 {
					t.Errorf("%s: %s.%s says %q", o.Name, name, f.JSON, f.Tag.Get("doc"))
				}
				if f.Tag.Get("brief") != "" {
					t.Errorf("%s: the description of %s.%s is not in tools/list", o.Name, name, f.JSON)
				}
				look(name+"."+f.JSON, f.Type)
			}
		}
		look("", o.Input)
	}
	if flags < 250 || parameters < 100 {
		t.Errorf("only %d flags and %d parameters", flags, parameters)
	}
}

// Every command of the root is in a group, so that help lists none under "additional".
func TestEveryCommandIsInAGroup(t *testing.T) {
	t.Parallel()
	for _, cmd := range Command().Commands() {
		if cmd.GroupID == "" && !cmd.Hidden {
			t.Errorf("%s is in no group of helpGroups()", cmd.Name())
		}
	}
}

func TestWrongArgumentsAreSaidInOurWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"pr status":         "claudeops pr status needs NUMBER",
		"pr status 1 2":     `claudeops pr status takes NUMBER and nothing more; leave "2" out`,
		"audit list x":      `claudeops audit list takes no arguments; leave "x" out`,
		"pr file demo/home": "claudeops pr file needs OWNER/NAME PATH, all of them",
		"run x":             `claudeops run takes no arguments; leave "x" out`,
	} {
		if out, errs, code := runArgs(t, nil, strings.Fields(line)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d\n%s%s, want %s", line, code, out, errs, want)
		}
	}
}

func TestValuesAreCompleted(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t)
	complete := func(want []string, line ...string) {
		t.Helper()
		got, _, _ := runArgs(t, w.env, append([]string{"__complete"}, line...)...)
		for _, w := range want {
			if !strings.Contains("\n"+got, "\n"+w) {
				t.Errorf("%v: %q is not offered among\n%s", line, w, got)
			}
		}
		if !strings.Contains(got, ":4\n") {
			t.Errorf("%v: files are offered, too:\n%s", line, got)
		}
	}
	records := w.env["CLAUDEOPS_STATE_DIR"]
	w.env["CLAUDEOPS_STATE_DIR"], w.env["CLAUDEOPS_REPOS"] = filepath.Join(t.TempDir(), "none"), "gitea:joe/other"
	complete([]string{"joe/other"}, "audit", "list", "--repo", "")
	w.env["CLAUDEOPS_STATE_DIR"] = records
	delete(w.env, "CLAUDEOPS_REPOS")
	w.propose("inodes")
	w.run("token", "create", "--name", "ci")
	complete([]string{"joe/infra\n"}, "pr", "list", "--repo", "")
	complete([]string{"1\tinodes"}, "pr", "status", "--repo", "joe/infra", "")
	complete([]string{"1\tinodes"}, "review", "merge", "")
	complete([]string{"refused\n", "revised\n"}, "audit", "list", "--outcome", "")
	complete([]string{"scope_denied\n"}, "audit", "list", "--code", "")
	complete([]string{"1\n", "2\n", "3\n"}, "run", "--tier", "")
	complete([]string{"codex\n"}, "mcp-config", "--client", "")
	complete([]string{"ci\n"}, "token", "revoke", "")
	complete([]string{"succeeded\n"}, "session", "list", "--state", "")
	complete([]string{"merged\n"}, "review", "list", "--state", "")
	complete([]string{"playbook\n"}, "pr", "create", "--type", "")
}

func TestTheListOfCodesIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[fault.Code]bool{}
	for _, code := range fault.Codes() {
		if !code.Known() || seen[code] {
			t.Errorf("%s is unknown, or there twice", code)
		}
		seen[code] = true
	}
	text := must.Get(os.ReadFile(filepath.Join("..", "base", "fault", "fault.go")))(t)
	if n := strings.Count(string(text), ` Code = "`); n != len(seen) {
		t.Errorf("%d codes of %d", len(seen), n)
	}
}

// riddles are words that only somebody who has read the code understands. internal/web has the same list for the pages.
func riddles() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(the( \w+)? door|what spoke|for real|remarks?)\b`)
}

func TestCommandsSpeakPlainly(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		texts := []string{cmd.Short, cmd.Long, cmd.Example}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { texts = append(texts, f.Usage) })
		for _, text := range texts {
			if found := riddles().FindString(text); found != "" {
				t.Errorf("%s says %q: %s", cmd.CommandPath(), found, text)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit((&commandLine{}).rootCommand())
}
