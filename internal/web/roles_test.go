package web

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// TestEveryRouteByEveryRole holds the table of docs: which role may ask what. It is made from the routes that are
// served, so that a new one has to be looked at here. TestEveryRoleIsHeldAtEveryRoute asks them all.
func TestEveryRouteByEveryRole(t *testing.T) {
	t.Parallel()
	var lines []string
	for name, r := range routesOf(t) {
		line := fmt.Sprintf("%-60s %-8s", name, r.Scope)
		if r.Agents {
			lines = append(lines, fmt.Sprintf("%-60s %-8s %-8s %-8s no", name, "(agents)", "no", "no"))
			continue
		}
		if r.Scope == "" {
			line = fmt.Sprintf("%-60s %-8s", name, "-")
		}
		for _, role := range policy.Roles() {
			may := "no"
			if r.Scope == "" || access.ScopesOf(role).Has(r.Scope) {
				may = "yes"
			}
			line += fmt.Sprintf(" %-8s", may)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	slices.Sort(lines)
	got := fmt.Sprintf("%-60s %-8s %-8s %-8s %s\n", "route", "scope", "viewer", "reviewer", "operator") +
		strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "roles.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the routes are (%v); UPDATE_GOLDEN=1 writes it:\n%s", file, err, got)
	}
}
