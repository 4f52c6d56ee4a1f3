package facts_test

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/corpus"
)

// TestTheSamplesAreSeenAndTheCleanOnesQuiet holds the figures that facts are worth reading for. The table is that of
// make bench-facts.
func TestTheSamplesAreSeenAndTheCleanOnesQuiet(t *testing.T) {
	samples, err := corpus.Load(os.DirFS("testdata/samples"))
	if err != nil {
		t.Fatal(err)
	}
	table := corpus.Count(samples)
	for kind, least := range map[string]int{"obvious": 75, "contextual": 85, "steering": 80} {
		if row := table.Row(kind); row.Total < 30 || row.Percent(row.Fitting) < least {
			t.Errorf("%s: a fitting fact in %d of %d samples; at least %d %%", kind, row.Fitting, row.Total, least)
		}
	}
	for kind, most := range map[string]int{"runbook": 20, "skill": 45, "edit": 15} {
		if row := table.Row(kind); row.Total < 10 || row.Percent(row.Grave) > most {
			t.Errorf("%s: a grave fact in %d of %d clean samples; at most %d %%", kind, row.Grave, row.Total, most)
		}
	}
}
