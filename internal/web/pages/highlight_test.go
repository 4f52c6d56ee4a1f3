package pages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/web/pages"
)

// coloured is the diff that adds the lines to a file, and the pieces of its lines.
func coloured(file string, lines ...string) (d pages.Diff, tokens [][]pages.Token) {
	d = pages.ParseDiff(fmt.Sprintf("--- /dev/null\n+++ b/%s\n@@ -0,0 +1,%d @@\n+%s\n", file, len(lines),
		strings.Join(lines, "\n+")), false, 1)
	for _, h := range d.Files[0].Hunks {
		for _, l := range h.Lines {
			tokens = append(tokens, l.Tokens)
		}
	}
	return d, tokens
}

func TestLinesAreColouredByTheNameOfTheirFile(t *testing.T) {
	for _, row := range []struct{ file, line, want string }{
		{"a.md", "## Disk", "h[## Disk]"},
		{"a.md", "- run `df -h` **now**, see [it](x)", "k[-] run s[`df -h`] b[**now**], see n[[it](x)]"},
		{"a.md", "#no heading, 2 * 3 [x] `open", "#no heading, 2 * 3 [x] `open"},
		{"a.md", "```sh", "c[```sh]"},
		{"A.MD", "1. one", "k[1.] one"},
		{"a.yaml", "  - name: \"x\" # why", "  k[- ]n[name]: s[\"x\"]c[ # why]"},
		{"a.yml", "retries: 3", "n[retries]: m[3]"},
		{"a.yml", "on: true", "n[on]: k[true]"},
		{"a.yml", "url: http://x#y", "n[url]: http://x#y"},
		{"a.json", `{"a": "b\"", "c": [1.5, null, "open`, `{n["a"]: s["b\""], n["c"]: [m[1.5], k[null], s["open]`},
		{"a.sh", `if [ "$x" = 1 ]; then echo $HOME ${y} # z`, `k[if] [ s["$x"] = 1 ]; k[then] echo n[$HOME] n[${y}]c[ # z]`},
		{"a.txt", "# not coloured", "# not coloured"},
		{"checks/x", "- plain", "- plain"},
		{"a.exe.md/y", "# plain", "# plain"},
		{"a.sh", "", ""},
	} {
		var got strings.Builder
		_, lines := coloured(row.file, row.line)
		for _, token := range lines[0] {
			if token.Class == "" {
				got.WriteString(token.Text)
			} else {
				got.WriteString(token.Class + "[" + token.Text + "]")
			}
		}
		if got.String() != row.want {
			t.Errorf("%s %q: %s, want %s", row.file, row.line, got.String(), row.want)
		}
	}
}

// hostile are units that, repeated, leave open what a grammar waits for the end of.
var hostile = []string{
	`"`, `\"`, `"\`, `'`, "`", "`a", "**", "**a*", "**a", "[", "[](", "[a](b", " #", "-", "- ", " ", "a: ", ":", "${",
	"$(", "-1", "e+", "true", "if ",
	"{\"a\":", "\"a\" ", "a", "\U0001F600", "<b>", "- - - -x ", "\u202e",
}

func TestColouringLosesNothingWhateverItIsGiven(t *testing.T) {
	for _, file := range []string{"x.md", "x.yaml", "x.json", "x.sh"} {
		for _, unit := range hostile {
			d, tokens := coloured(file, strings.Repeat(unit, 1+90/len(unit)), unit, strings.Repeat(unit, 2000))
			for i, l := range d.Files[0].Hunks[0].Lines {
				whole := ""
				for _, token := range tokens[i] {
					whole += token.Text
				}
				if whole != l.Text {
					t.Errorf("%s %q: the pieces are %q of %q", file, unit, whole, l.Text)
				}
			}
		}
	}
}

func TestColouringIsQuickWhateverItIsGiven(t *testing.T) {
	// what one file may have; nearly the longest line that is coloured
	const size, width = 256 << 10, 990
	// the slowest for each
	for file, unit := range map[string]string{"x.md": "[", "x.yaml": "[a](b", "x.json": "`a", "x.sh": "- - - -x "} {
		var lines []string
		for range size / width {
			lines = append(lines, strings.Repeat(unit, width/len(unit)))
		}
		started := time.Now()
		coloured(file, lines...)
		took := time.Since(started)
		t.Logf("%s: %s", file, took)
		if took > time.Minute { // a tenth of a second, but for the race detector on a busy machine
			t.Errorf("%s takes %s", file, took)
		}
	}
}

func TestOnlyAPartOfALargeDifferenceIsColoured(t *testing.T) {
	lines := make([]string, 900)
	for i := range lines {
		lines[i] = "# " + strings.Repeat("x", 298)
	}
	_, tokens := coloured("a.md", lines...)
	n := 0
	for _, line := range tokens {
		if line[0].Class == "h" {
			n++
		}
	}
	if n != (16<<10)/300 {
		t.Errorf("%d lines are coloured", n)
	}
	if _, tokens := coloured("a.md", "# "+strings.Repeat("x", 1000), "# short"); tokens[0][0].Class != "" ||
		tokens[1][0].Class != "h" {
		t.Errorf("a long line: %v", tokens[1])
	}
}
