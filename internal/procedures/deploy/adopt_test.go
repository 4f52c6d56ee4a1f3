package deploy

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

// Pruning leaves what gives a person's file back.
func TestPruningLeavesTheWayBack(t *testing.T) {
	b := newBench(t, commandText("0"))
	operationtest.WriteFiles(t, b.dir, map[string]string{"project/.claude/commands/fix.md": "a person's\n"})
	s := NewService(b.settings)
	first := ""
	for i := range 6 {
		operationtest.WriteFiles(t, b.dir, commandText(strings.Repeat("x", i+1)))
		_, done, err := s.Apply(t.Context(), Request{}, change.Approval{Adopt: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = done.Previous
		}
	}
	if _, err := s.Prune(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Rollback(t.Context(), first, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.tree("project")["project/.claude/commands/fix.md"]; got != "a person's\n" {
		t.Errorf("%q", got)
	}
}
