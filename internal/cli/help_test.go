package cli

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/operation"
)

// Every command but those of completion says by an example how it is used, and the example is a command that exists.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	examples := 0
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
			if problem := unknownIn(strings.FieldsFunc(command,
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
	a := &commandLine{lookup: func(string) (string, bool) { return "", false }}
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
		var out strings.Builder
		code := Run(t.Context(), strings.Fields(line), Streams{In: strings.NewReader(""), Out: &out, Err: &out},
			func(string) (string, bool) { return "", false })
		if code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit %d\n%s, want %s", line, code, out.String(), want)
		}
	}
}
