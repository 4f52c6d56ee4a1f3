package cli

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/facts"
)

func TestATerminalHasWhatIsSaidOfManyLinesOnce(t *testing.T) {
	t.Parallel()
	said := func(path string, line int, removed bool) facts.Fact {
		return facts.Fact{Class: facts.Weakens, Path: path, Line: line, Removed: removed, Words: "x", Sentence: "Skips: x"}
	}
	var b strings.Builder
	describeFacts(&b, knownFacts{Reading: facts.Reading{Counts: map[facts.Class]int{facts.Weakens: 4},
		Facts: []facts.Fact{said("a.md", 3, false), said("a.md", 9, false), said("a.md", 4, true), said("b.md", 1, false)}}})
	if want := "  a.md:3,9, a.md:4 (removed), b.md:1  drops a safeguard: Skips: x\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q lacks %q", b.String(), want)
	}
}
