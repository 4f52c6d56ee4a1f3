package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("before\n")
	columns(&b, [][]string{{"ID", "TITLE", "STATE"}, {"1", strings.Repeat("long title ", 10), "Opened"},
		{"22", "short", "Refused"}})
	b.WriteString("after\n")
	const wide = "before\nID  TITLE" // and so on
	text := surface{}.lay(b.String())
	if !strings.HasPrefix(text, wide) || !strings.Contains(text, strings.Repeat("long title ", 9)) ||
		strings.Contains(text, "\x1b") {
		t.Errorf("without a terminal:\n%s", text)
	}
	for _, width := range []int{40, 60} {
		text := surface{width: width}.lay(b.String())
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
				t.Errorf("%d characters on a terminal of %d: %q", n, width, line)
			}
		}
		if !strings.Contains(text, "…  Opened\n") || !strings.Contains(text, "Refused\n") {
			t.Errorf("%d:\n%s", width, text)
		}
	}
	if text := (surface{width: 5}).lay(b.String()); text != "before\nID\n1\n22\nafter\n" {
		t.Errorf("on a terminal of 5:\n%s", text)
	}
	coloured := surface{colour: true}.lay(b.String())
	for _, want := range []string{"\x1b[1mID\x1b[0m", "\x1b[32mOpened\x1b[0m\n", "\x1b[31mRefused\x1b[0m\n"} {
		if !strings.Contains(coloured, want) {
			t.Errorf("%q is missing in %q", want, coloured)
		}
	}
}

// A table without a head is a table of values: its first row counts when empty columns are left out.
func TestATableOfOneRowKeepsItsColumns(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	sentences(&b, [][]string{{"ok", "repository me/home", "it is there"}})
	if text := (surface{width: 80}).lay(b.String()); text != "ok  repository me/home  it is there\n" {
		t.Errorf("it shows %q", text)
	}
}

// A sentence in the last column goes on in the next line, below itself, and none of it is lost.
func TestSentencesAreFoldedAndNotCut(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	long := strings.Repeat("correct the setting, ", 6) + "and " + strings.Repeat("x", 50)
	sentences(&b, [][]string{{"warning", "a part", long}, {"ok", "another", "short"}})
	if text := (surface{}).lay(b.String()); text != "warning  a part   "+long+"\nok       another  short\n" {
		t.Errorf("without a terminal:\n%s", text)
	}
	text := surface{width: 50}.lay(harmless(b.String()))
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 50 {
			t.Errorf("%d characters: %q", n, line)
		}
	}
	words, indent := strings.Join(strings.Fields(text), " "), strings.Repeat(" ", len("warning  a part   "))
	if strings.Contains(text, "…") || strings.Count(words, "correct the setting,") != 6 ||
		strings.Count(text, "x") != 50 || !strings.Contains(text, "\n"+indent+"setting") {
		t.Errorf("%s", text)
	}
}

// What others wrote cannot make rows of its own.
func TestACellStaysACell(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	columns(&b, [][]string{{"a" + cellMark + "b\n" + rowMark + "c", "d"}})
	if got := (surface{}).lay(b.String()); got != "ab c  d\n" {
		t.Errorf("%q", got)
	}
}

func TestColoursAreForTerminalsUnlessTheyAreForced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false}, {map[string]string{"CLICOLOR_FORCE": "1"}, true}, {map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false},
	} {
		a := &commandLine{lookup: valuesOf(c.env)}
		if got := surfaceOf(a, new(bytes.Buffer)); got.colour != c.want || got.width != 0 {
			t.Errorf("%v: %+v", c.env, got)
		}
	}
}

func TestMistypedCommandsAndFlagsAreMet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ typed, want string }{
		{"audti", `claudeops has no command "audti"; did you mean audit?`},
		{"audit lsit", `claudeops audit has no command "lsit"; did you mean list?`},
		{"review aprove", "did you mean approve?"}, {"pr zzzzzz", `claudeops pr has no command "zzzzzz"` + "\n"},
		{"audit list --outcom x", "unknown flag: --outcom; did you mean --outcome?"},
		{"audit list --repro x", "did you mean --repo?"},
		{"audit list --nothing-like-it", "unknown flag: --nothing-like-it\n"}, {"--vers", "did you mean --version?"},
		{"audit list --outcome bogus", "--outcome is opened, revised, reused, dry_run, refused, failed or done"},
		{"audit list --pull bogus", "--pull is open, merged, closed or gone"}, {"audit list --code bogus", "is not a code"},
		{"review list --repo demo/home --state bogus", "--state is open, closed, merged or all"},
		{"session list --state bogus", "--state is one of"}, {"session list --only-tier 9", "--only-tier is 1, 2 or 3"},
		{"token create --name x --max-tier 9", "--max-tier is 1, 2 or 3"},
		{"token create --name x --scopes bogus", "propose,review,read"},
		{"mcp-config --client bogus", "--client is one of"}, {"mcp-server --as bogus", "bogus"},
	} {
		dir := t.TempDir()
		env := map[string]string{"CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"), "HOME": dir}
		out, errs, code := runArgs(t, env, strings.Fields(c.typed)...)
		if code != 2 || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%s: %d, %q, %q", c.typed, code, errs, out)
		}
	}
}

func TestAnAnswerForPeopleIsATableAndHarmless(t *testing.T) {
	t.Parallel()
	type row struct {
		Name string   `json:"name"`
		Tags []string `json:"tags,omitempty"`
		New  *bool    `json:"new,omitempty"`
	}
	type answer struct {
		Rows  []row    `json:"rows"`
		Total int      `json:"total"`
		Text  string   `json:"text,omitempty"`
		Empty []string `json:"empty,omitempty"`
		Any   any      `json:"any"`
		Inner struct {
			On bool `json:"on"`
		} `json:"inner"`
	}
	yes := true
	a := answer{Rows: []row{{"a\n\x1b[31mb", []string{"x", "y"}, &yes}, {"c", nil, nil}}, Total: 2, Text: "one\ntwo\n",
		Empty: []string{}, Any: map[string]any{"k": 1}}
	a.Inner.On = true
	var b strings.Builder
	writeStruct(&b, "", reflect.ValueOf(a))
	text := surface{}.lay(b.String())
	if strings.ContainsRune(text, '\x1b') {
		t.Errorf("control characters reach the terminal: %q", text)
	}
	for _, line := range []string{"rows: 2", "NAME", "x, y  true", "total: 2", "text: \n  one\n  two\n", `any: {"k":1}`,
		"inner.on: true"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if strings.Contains(text, "empty") {
		t.Errorf("what is empty is shown:\n%s", text)
	}
}

func TestOnlyYesAgrees(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{"y\n": true, " YES \n": true, "yes": true, "": false, "\n": false,
		"n\n": false, "yesterday\n": false, strings.Repeat(" ", 100) + "y\n": false} {
		var shown strings.Builder
		if got := answersYes(strings.NewReader(said), &shown, "Really?"); got != want || shown.String() != "Really? [y/N] " {
			t.Errorf("%q: %t, %q", said, got, shown.String())
		}
	}
	file := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer func() { _ = file.Close() }()
	if agreed(&commandLine{streams: Streams{In: file}}, "Really?") {
		t.Error("a file is not a terminal")
	}
}
