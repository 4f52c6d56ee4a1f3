package web

import (
	"net/http"
	"slices"
	"testing"
)

// TestEveryRouteThatChangesSomethingIsRecordedWhenItIsRefused goes over all routes: one that is not for reading records that a
// caller has not the scope, as a proposal, a review or an action on sessions. A new one has to say as which, and belongs into the
// parity test of internal/cli.
func TestEveryRouteThatChangesSomethingIsRecordedWhenItIsRefused(t *testing.T) {
	without := []string{ // nobody is refused for a scope there, or nothing is changed
		"POST /sign-in", "POST /sign-out", "POST /api/v1/policy/check", "POST /webhooks/github", "POST /webhooks/gitea",
	}
	s := &Server{}
	for _, r := range append(s.routes(), s.pageRoutes()...) {
		if r.method == http.MethodGet {
			continue
		}
		named := r.method + " " + r.pattern
		recorded := r.proposes || r.reviews || r.operates != ""
		if exempt := slices.Contains(without, named); recorded == exempt {
			t.Errorf("%s: recorded %t, exempt %t", named, recorded, exempt)
		}
	}
}
