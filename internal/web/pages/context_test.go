package pages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/web/pages"
)

// marked returns the pieces of a line, the marked ones in brackets.
func marked(l *pages.DiffLine) (out string) {
	for _, t := range l.Tokens {
		if out += t.Text; t.Marked {
			out = out[:len(out)-len(t.Text)] + "[" + t.Text + "]"
		}
	}
	return out
}

func TestWordsThatDifferAreMarkedInLinesThatStandForEachOther(t *testing.T) {
	for _, one := range []struct{ before, after, wantBefore, wantAfter string }{
		{"Below 90 % on every volume.", "Below 80 % on every big volume.",
			"Below [90] % on every volume.", "Below [80] % on every [big ]volume."},
		{"# Check 31", "# Check 30", "# Check [31]", "# Check [30]"},
		{"größer als שלום 👩‍🚒", "größer als שלום 🧯", "größer als שלום [👩‍🚒]", "größer als שלום [🧯]"},
		{"nothing alike", "utterly other", "nothing alike", "utterly other"},
		{"same", "same", "same", "same"},
		{"", "x", "", "x"},
		{strings.Repeat("a ", 300), strings.Repeat("a ", 299) + "b ", strings.Repeat("a ", 300),
			strings.Repeat("a ", 299) + "b "},
	} {
		d := pages.ParseDiff("--- a/x.md\n+++ b/x.md\n@@ -1 +1 @@\n-"+one.before+"\n+"+one.after+"\n", false, 1)
		lines := d.Files[0].Hunks[0].Lines
		if got := [2]string{marked(&lines[0]), marked(&lines[1])}; got != [2]string{one.wantBefore, one.wantAfter} {
			t.Errorf("%q, %q: %q", one.before, one.after, got)
		}
	}
}

func TestLinesAroundHunksAreThoseOfTheNewText(t *testing.T) {
	var lines []string
	for n := range 40 {
		lines = append(lines, fmt.Sprint("line ", n+1))
	}
	lines[19] = "new"
	text := strings.Join(lines, "\n") + "\n"
	const diff = "--- a/x\n+++ b/x\n@@ -10,1 +10,0 @@\n-gone\n@@ -20,3 +19,3 @@\n line 19\n-old\n+new\n line 21\n"
	d := pages.ParseDiff(diff, false, 1)
	d.Surround(map[string]string{"x": text})
	f := d.Files[0]
	first, second := f.Hunks[0].Gap, f.Hunks[1].Gap
	if first.Count != 10 || second.Count != 8 || f.Tail.Count != 19 {
		t.Fatalf("gaps of %d, %d and %d lines", first.Count, second.Count, f.Tail.Count)
	}
	if l := second.Lines[0]; l.Old != 11 || l.New != 11 || l.Text != "line 11" {
		t.Errorf("the second gap begins with %+v", l)
	}
	if l := f.Tail.Lines[18]; l.New != 40 || l.Text != "line 40" || len(f.Tail.Pairs()) != 19 {
		t.Errorf("the last line is %+v", l)
	}
	other := pages.ParseDiff(diff, false, 1)
	other.Surround(map[string]string{"x": strings.Replace(text, "new", "newer", 1)})
	if f := other.Files[0]; f.Hunks[0].Gap != nil || f.Tail != nil {
		t.Error("lines of another text are shown")
	}
	long := pages.ParseDiff(diff, false, 1)
	long.Surround(map[string]string{"x": text + strings.Repeat("more\n", 1000)})
	if g := long.Files[0].Tail; g.Count != 1019 || g.Lines != nil {
		t.Errorf("%d lines, %d of them shown", g.Count, len(g.Lines))
	}
}
