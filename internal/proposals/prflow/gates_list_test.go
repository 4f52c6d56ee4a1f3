package prflow

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestThePageOfTheGatesHasTheirListInItsOrder(t *testing.T) {
	t.Parallel()
	const name = "../../../docs/explain/gates.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, g := range gates() {
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", g.Name, g.Asks, g.Phase)
	}
	before, after, _ := strings.Cut(string(page), "|---|---|---|\n")
	end := strings.Index(after, "\n\n")
	operationtest.Golden(t, name, []byte(before+"|---|---|---|\n"+rows.String()+after[end+1:]))
}

func TestTheRecordsKnowEveryGate(t *testing.T) {
	t.Parallel()
	if !slices.Equal(Gates(), record.Gates()) {
		t.Errorf("the records know the gates %q; prflow asks %q", record.Gates(), Gates())
	}
	for _, gate := range append(Gates(), "") {
		if got, err := record.ParseGate(string(gate)); got != gate || err != nil {
			t.Errorf("%q is read as %q, %v", gate, got, err)
		}
	}
	if _, err := record.ParseGate("none"); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("a name that no gate has: %v", err)
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
