package outgoing_test

import (
	"os"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/outgoing"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// docs/reference/outgoing-text.md is the tables that TestTheDocumentedCases runs: `make golden` writes it.
func TestThePageOfOutgoingTextIsWhatIsRun(t *testing.T) {
	cases, err := os.ReadFile("testdata/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	operationtest.Golden(t, "../../../docs/reference/outgoing-text.md", cases)
}

// TestTheDocumentedCases runs the tables of testdata/cases.md.
func TestTheDocumentedCases(t *testing.T) {
	raw, err := os.ReadFile("testdata/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := outgoing.Rules{Mentions: []string{"bob"}}
	rewrite, rows := rules.Body, 0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "## ") {
			rewrite = map[bool]func(string) (string, []string){true: rules.Title, false: rules.Body}[line == "## Titles\n"]
		}
		what, written, leaves := cells(line)
		if !strings.HasPrefix(written, "`") {
			continue
		}
		rows++
		t.Run(what, func(t *testing.T) {
			in, want := code(written), code(leaves)
			if leaves == "unchanged" {
				want = in
			}
			got, warnings := rewrite(in)
			if got != want {
				t.Errorf("%q leaves as %q, want %q", in, got, want)
			}
			if (got == in) != (len(warnings) == 0) {
				t.Errorf("warnings %q", warnings)
			}
			if again, warnings := rewrite(got); again != got || len(warnings) > 0 {
				t.Errorf("rewritten again it leaves as %q, with the warnings %q", again, warnings)
			}
		})
	}
	if rows < 80 {
		t.Errorf("%d rows were read", rows)
	}
}

// cells are the first three cells of a table's row.
func cells(line string) (a, b, c string) {
	parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00"), "|")
	if len(parts) != 5 {
		return "", "", ""
	}
	cell := func(i int) string { return strings.ReplaceAll(strings.TrimSpace(parts[i]), "\x00", "|") }
	return cell(1), cell(2), cell(3)
}

// code is the text of a code span, with its line ends.
func code(cell string) string {
	run := cell[:len(cell)-len(strings.TrimLeft(cell, "`"))]
	text := strings.TrimSuffix(strings.TrimPrefix(cell, run), run)
	if strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") {
		text = text[1 : len(text)-1]
	}
	return strings.ReplaceAll(text, `\n`, "\n")
}
