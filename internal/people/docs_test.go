package people_test

import (
	"os"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/people"
)

// TestTheDocumentationHasEveryRule compares docs/people.md with Rules.
func TestTheDocumentationHasEveryRule(t *testing.T) {
	text, err := os.ReadFile("../../docs/people.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) == 10 {
			rows[strings.Trim(cells[1], " `")] = cells[5:9]
		}
	}
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	for _, rule := range people.Rules() {
		if rule.Action == people.Review {
			continue // in words, below the table
		}
		row := rows[string(rule.Action)]
		if len(row) != 4 {
			t.Errorf("%s has no row", rule.Action)
			continue
		}
		for i, want := range []bool{rule.NoPolicy, rule.Listed, rule.ReadOnly, rule.DryRun} {
			if got := strings.TrimSpace(row[i]); got != yes(want) {
				t.Errorf("%s, column %d: %s, want %s", rule.Action, i+5, got, yes(want))
			}
		}
		delete(rows, string(rule.Action))
	}
	for name := range rows {
		if name != "action in the audit" && !strings.HasPrefix(name, "-") {
			t.Errorf("there is no rule for %s", name)
		}
	}
}
