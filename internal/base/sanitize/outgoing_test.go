package sanitize_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/markdown/markdowntest"
	"github.com/claudeops/claudeops/internal/base/sanitize"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func TestOrdinaryBodiesStayAsTheyAre(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/ordinary/*.md", "../../../checks/*.md", "../../../playbooks/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 3 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		raw := operationtest.ReadFile(t, file)
		text := strings.TrimRight(string(raw), " \t\r\n")
		got, warnings := sanitize.Rules{}.Body(text)
		if got != text || len(warnings) > 0 {
			t.Errorf("%s was changed: %q\n%s", file, warnings, got)
		}
	}
}

func TestOrdinaryTitlesStayAsTheyAre(t *testing.T) {
	for _, title := range []string{
		"Warn about inodes on barn at 70 percent", "fix(checks): raise the limit (#12)", "Use `df -i` in checks/disk.md",
		"Revert \"Warn about inodes\"",
		"Fixes the disk check", "Skip CI hosts in the check", "Update ops@example.org", "docs: x < y, a && b",
		"[barn] raise 70 % → 80 %", "C:\\Temp is full",
	} {
		if got, warnings := (sanitize.Rules{}).Title(title); got != title || len(warnings) > 0 {
			t.Errorf("%q became %q: %q", title, got, warnings)
		}
	}
}

func TestWarningsAreBounded(t *testing.T) {
	var body strings.Builder
	for n := range 2000 {
		body.WriteString("@a" + strings.Repeat("b", n%40) + string(rune('a'+n%26)) + "\n\n")
	}
	_, warnings := sanitize.Rules{}.Body(body.String())
	if len(warnings) != 21 || !strings.Contains(warnings[20], "more changes") {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}

func TestThePolicyMayAllow(t *testing.T) {
	rules := sanitize.Rules{Mentions: []string{"ann", "org/team", "claude"}, ClosingKeywords: true}
	for _, text := range []string{"@Ann and @org/team: fixes #1, resolves [#2](https://example.org)",
		"@claude `@claude`"} {
		if got, warnings := rules.Body(text); got != text || len(warnings) > 0 {
			t.Errorf("%q became %q: %q", text, got, warnings)
		}
		if got, warnings := rules.Title(text); got != text || len(warnings) > 0 {
			t.Errorf("the title %q became %q: %q", text, got, warnings)
		}
	}
}

// docs/reference/outgoing-text.md is the tables that TestTheDocumentedCases runs: `make golden` writes it.
func TestThePageOfOutgoingTextIsWhatIsRun(t *testing.T) {
	cases := operationtest.ReadFile(t, "testdata/cases.md")
	operationtest.Golden(t, "../../../docs/reference/outgoing-text.md", cases)
}

// TestTheDocumentedCases runs the tables of testdata/cases.md.
func TestTheDocumentedCases(t *testing.T) {
	raw := operationtest.ReadFile(t, "testdata/cases.md")
	rules := sanitize.Rules{Mentions: []string{"bob"}}
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

// TestHostileBodiesCostLittle holds what a body or a reply may allocate: about 1,300 bytes for each of its own, in all
// rounds and grammars together. What grows with the square of a size takes hundreds of megabytes.
func TestHostileBodiesCostLittle(t *testing.T) {
	const most = 80 << 20
	for name, body := range markdowntest.Hostile() {
		var rewritten string
		if n := markdowntest.Allocated(func() { rewritten, _ = sanitize.Rules{}.Body(body) }); n > most {
			t.Errorf("%s: %d MB are allocated", name, n>>20)
		}
		if rewritten == body { // and so it is when it is rewritten again
			continue
		}
		if again, _ := (sanitize.Rules{}).Body(rewritten); again != rewritten && len(rewritten) <= 2*markdowntest.Size {
			t.Errorf("%s changed when they were rewritten again", name)
		}
	}
}

func BenchmarkHostileBodies(b *testing.B) {
	for name, body := range markdowntest.Hostile() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				sanitize.Rules{}.Body(body)
			}
		})
	}
}
