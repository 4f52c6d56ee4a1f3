package prflow

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestThePageOfTheGatesHasTheirListInItsOrder(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/explain/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, g := range gates() {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", g.Name, g.Asks, g.Phase))
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/explain/gates.md has\n%s\nthe list of gates is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEachGateIsWholeAndItsPhaseIsReached(t *testing.T) {
	t.Parallel()
	phases := []phase{phaseRequest, phaseRepository, phasePulls, phaseReserve}
	for _, g := range gates() {
		if g.Name == "" || g.Asks == "" || g.Judge == nil || !slices.Contains(phases, g.Phase) {
			t.Errorf("the gate %q is not whole: phase %q", g.Name, g.Phase)
		}
	}
}
