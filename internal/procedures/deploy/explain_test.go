package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layered is a configuration whose skill has a file of each kind of layer, and two modules in one file.
func layered() map[string]string {
	files := life()
	files["agentpack/repo/"+
		configName] += "  - {id: \"instructions:b\", type: instructions, tags: [base], source: {local_path: {path: " +
		"modules/b}}}\n"
	files["agentpack/repo/modules/b/AGENTS.md"] = "# More\nand more\n"
	files["agentpack/repo/modules/look/steps.md"] = "one\ntwo\nthree\n"
	key := fsKey("skill:look")
	files["agentpack/repo/overlays/"+key+"/.agentpack/overlay.json"] = `{"overlay_kind":"patch"}`
	files["agentpack/repo/overlays/"+key+
		"/.agentpack/patches/steps.md.patch"] = "--- a/steps.md\n+++ b/steps.md\n@@ -1,3 +1,4 @@\n one\n+one and a half\n " +
		"two\n three\n"
	files["agentpack/repo/overlays/machines/box/"+key+"/here.md"] = "here\n"
	files["agentpack/repo/overlays/machines/box/"+fsKey("instructions:a")+"/AGENTS.md"] = "# Rules of this machine\n"
	return files
}

func TestExplainSaysWhichModuleAndOverlayGiveALine(t *testing.T) {
	b := newBench(t, layered())
	b.mustOK(ToolApply, `{"yes":true}`)
	for name, c := range map[string]struct{ arguments, want string }{
		"a line of a module among several": {`{"path":"AGENTS.md","line":9}`,
			"codex instructions:b AGENTS.md 8-9: upstream source modules/b/AGENTS.md:2*"},
		"an overlay in place of the source": {
			`{"path":"AGENTS.md","line":2}`,
			"codex instructions:a AGENTS.md 2-2: upstream source modules/a/AGENTS.md; machine replaces overlays/machines/box/" +
				fsKey("instructions:a") + "/AGENTS.md:1*",
		},
		"a line of a patch": {
			`{"path":".codex/skills/look/steps.md","line":2}`,
			"codex skill:look steps.md 1-4: upstream source modules/look/steps.md; global patches overlays/" +
				fsKey("skill:look") + "/.agentpack/patches/steps.md.patch*",
		},
		"a line beside the patch": {
			`{"path":".codex/skills/look/steps.md","line":3}`,
			"codex skill:look steps.md 1-4: upstream source modules/look/steps.md:2*; global patches overlays/" +
				fsKey("skill:look") + "/.agentpack/patches/steps.md.patch",
		},
		"a file that an overlay adds": {
			`{"path":".claude/skills/look/here.md"}`, "claude_code skill:look here.md 1-1: machine adds overlays/machines/box/" +
				fsKey("skill:look") + "/here.md*",
		},
		"a module that is one file": {`{"path":"` + b.dir + `/project/.claude/commands/fix.md"}`,
			"claude_code command:fix fix.md 1-4: upstream source modules/fix.md*"},
		"a header that the target wants": {
			`{"path":".cursor/rules/` + fsKey("instructions:b") + `.mdc","line":8}`,
			"cursor instructions:b AGENTS.md 7-8: upstream source modules/b/AGENTS.md:2*",
		},
		"a file of the user": {`{"path":"~/.codex/AGENTS.md","line":9}`,
			"codex instructions:b AGENTS.md 8-9: upstream source modules/b/AGENTS.md:2*"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explained(t, b.mustOK(NameExplain, c.arguments)); got != c.want {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
	for arguments, want := range map[string]string{
		`{"path":"README.md"}`: "no module gives", `{"path":"AGENTS.md","line":4}`: "between the parts",
		`{"path":"AGENTS.md","line":400}`: "beyond the file's end",
		`{"path":"../../etc/passwd"}`:     "no module gives",
	} {
		if out := b.ask(NameExplain, arguments); out.OK || out.Errors[0].Code != FileUnknown ||
			!strings.Contains(out.Errors[0].Message, want) {
			t.Errorf("%s: %+v", arguments, out.Errors)
		}
	}
	if err := os.WriteFile(filepath.Join(b.dir, "project", "AGENTS.md"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	drifted := b.mustOK(NameExplain, `{"path":"AGENTS.md"}`)["files"].([]any)[0].(map[string]any)
	if drifted["drift"] != "modified" || len(drifted["parts"].([]any)) != 2 {
		t.Errorf("%v", drifted)
	}
}

// explained is the answer in lines.
func explained(t *testing.T, data map[string]any) string {
	t.Helper()
	text, err := json.Marshal(data)
	var of ExplainData
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return inLines(of)
}

func TestLineBeforeFindsWhereALineStood(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          []int // by the lines of after; 0 for one that the edit made
	}{
		{"a\nb\nc\n", "a\nb\nc\n", []int{1, 2, 3}},
		{"a\nb\nc\n", "x\na\nb\nc\n", []int{0, 1, 2, 3}},
		{"a\nb\nc\n", "a\nc\n", []int{1, 3}},
		{"a\nb\nc\n", "a\nB\nc\nd\n", []int{1, 0, 3, 0}},
		{"a\nb", "a\nx\nb", []int{1, 0, 2}},
		{"a\nb\nc\nd\n", "c\nd\nx", []int{3, 4, 0}},
		{"", "a\n", []int{0}},
	} {
		for i, want := range c.want {
			at, kept := lineBefore(c.before, c.after, i+1)
			if at != want || kept != (want > 0) {
				t.Errorf("%q to %q, line %d: %d, %t; want %d", c.before, c.after, i+1, at, kept, want)
			}
		}
	}
}

// inLines has a line for each part, in which * marks what decides.
func inLines(d ExplainData) string {
	var lines []string
	for _, f := range d.Files {
		for _, p := range f.Parts {
			var layers []string
			for _, l := range p.Layers {
				text := l.Level + " " + l.How + " " + l.File
				if l.Line > 0 {
					text += ":" + strconv.Itoa(l.Line)
				}
				if l.Gives {
					text += "*"
				}
				layers = append(layers, text)
			}
			lines = append(lines, fmt.Sprintf("%s %s %s %d-%d: %s", f.Target, p.Module, p.File, p.First, p.Last,
				strings.Join(layers, "; ")))
		}
	}
	return strings.Join(lines, "\n")
}
