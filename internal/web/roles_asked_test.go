package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
)

// TestEveryRoleIsHeldAtEveryRoute asks every route of the table as a person of each role, and as a stranger.
func TestEveryRoleIsHeldAtEveryRoute(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile(filepath.Join("testdata", "roles.txt"))
	if err != nil {
		t.Fatal(err)
	}
	w, provider := peopleWorld(t)
	w.web.Providers.Reviewer = &reviewer{world: w}
	w.build()
	roles := []string{"viewer", "reviewer", "operator"}
	var logins [3]*http.Cookie
	for i, role := range roles {
		logins[i] = w.signInAs(provider, fakeoidc.Person{Subject: role, User: role, Groups: []string{role + "s"}})
	}
	asked := 0
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		f := strings.Fields(line)
		method, pattern, scope, may := f[0], f[1], f[2], f[3:]
		// open, a stream without end, many documents
		if scope == "-" || scope == "(agents)" || pattern == "/events" || pattern == "/audit.jsonl" {
			continue
		}
		target := strings.TrimSuffix(regexp.MustCompile(`\{[^$}]*\}`).ReplaceAllString(pattern, "x1"), "{$}")
		ask := func(edits ...edit) reply {
			asked++
			body := ""
			if method == http.MethodPost {
				body = "{}"
			}
			return w.do(method, target, body, edits...)
		}
		if a := ask(); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s, a stranger: %d", method, pattern, a.StatusCode)
		}
		for i, role := range roles {
			a := ask(cookies(logins[i]))
			if denied := a.StatusCode == http.StatusForbidden && a.code() == string(fault.Forbidden) &&
				strings.Contains(string(a.body), "needs the scope"); denied != (may[i] == "no") {
				t.Errorf("%s %s, %s: %d %s; the table says %s", method, pattern, role, a.StatusCode, a.body, may[i])
			}
			if a.StatusCode == http.StatusUnauthorized {
				t.Fatalf("%s %s signed the %s out: %s", method, pattern, role, a.body)
			}
		}
	}
	t.Logf("%d requests", asked)
}
