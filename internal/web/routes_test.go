package web

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/api"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// KnownWebhooks are those of every forge, signed with the secret.
func KnownWebhooks(secret string) (out []api.Sender) {
	for _, d := range forges.All() {
		out = append(out, api.Sender{Source: d.Webhooks, Secret: func() string { return secret }})
	}
	return out
}

// openRoutes returns the routes that answer anyone: probes, what signing in needs, and webhooks, which are signed.
func openRoutes() []string {
	return []string{
		"GET /healthz", "GET /readyz", "GET /sign-in", "GET /sign-in/reachable", "POST /sign-in", "POST /sign-out",
		"GET /sign-out",
		"GET /static/{name}",
		"POST /webhooks/github", "POST /webhooks/gitea",
		"POST /hooks/run/{name}", // a token of its own opens it, and no scope
	}
}

// routesOf are all routes, by method and pattern.
func routesOf(t *testing.T) map[string]httpx.Route {
	t.Helper()
	routes, _, err := assemble(Options{
		Callers:  Callers{Agents: Agents{Programs: oauth.New(oauth.Options{})}},
		Webhooks: api.Webhooks{Senders: KnownWebhooks("")}, Env: httpx.Env{Now: time.Now},
		Toolsets: Toolsets{Operations: []operation.Toolset{prflow.Toolset(nil)}},
		People: People{Acts: slices.Concat(session.Acts{}.Operations(), credentials.ConnectionActs{}.Operations(),
			credentials.LoginActs{}.Operations(), credentials.TokenActs{}.Operations())},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]httpx.Route{}
	for _, r := range routes {
		out[r.Method+" "+r.Pattern] = r
	}
	return out
}

func TestEveryOtherRouteAsksForAScope(t *testing.T) {
	t.Parallel()
	open := []string{}
	for name, r := range routesOf(t) {
		if r.Scope == "" && !r.Agents {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	want := openRoutes()
	slices.Sort(want)
	if !slices.Equal(open, want) {
		t.Errorf("open are %v, want %v", open, want)
	}
}

func TestStrangersSendLittle(t *testing.T) {
	t.Parallel()
	routes := routesOf(t)
	for name, most := range map[string]int64{"POST /sign-in": 4 << 10, "POST /webhooks/github": 1 << 20,
		"POST /webhooks/gitea": 1 << 20, "POST /oauth/register": 16 << 10, "POST /oauth/token": 8 << 10,
		"POST /oauth/revoke": 8 << 10} {
		if limit := routes[name].Body; limit.Bytes != most || limit.Within != httpx.OpenBodyTime {
			t.Errorf("%s: %+v", name, limit)
		}
	}
	s := &Server{mux: http.NewServeMux()}
	if err := s.register([]httpx.Route{{Method: "POST", Pattern: "/new"}}); err == nil {
		t.Error("a route without a bound is served")
	}
}

// TestEveryRouteThatChangesSomethingIsRecordedWhenItIsRefused goes over all routes: one that is not for reading records
// that a caller has not the scope, as a proposal, a review or an action on sessions. A new one has to say how, and
// belongs into the parity test of internal/cli.
func TestEveryRouteThatChangesSomethingIsRecordedWhenItIsRefused(t *testing.T) {
	t.Parallel()
	without := []string{ // no caller is refused for a scope there, or nothing is changed
		"POST /sign-in", "POST /sign-out", "POST /api/v1/policy/check", "POST /webhooks/github", "POST /webhooks/gitea",
		"POST /hooks/run/{name}",   // a token of its own opens it, and no scope
		"POST /mcp", "DELETE /mcp", // no person's token opens them; door.Tokens records who is refused
		"POST /oauth/register", "POST /oauth/token", "POST /oauth/revoke", // nor these; oauth.Service does
	}
	for name, r := range routesOf(t) {
		if r.Method == http.MethodGet {
			continue
		}
		if recorded, exempt := r.Refused != nil, slices.Contains(without, name); recorded == exempt {
			t.Errorf("%s: recorded %t, exempt %t", name, recorded, exempt)
		}
	}
}

// The pages of toolsets are among the routes where a toolset is enabled.
func TestTheDocumentationNamesEveryPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/dashboard-pages.md")
	if err != nil {
		t.Fatal(err)
	}
	routes := routesOf(t)
	for name, r := range routes {
		_, form := routes["POST "+r.Pattern] // its address leads to the page with the form
		if r.Method != http.MethodGet || !r.Page || form || r.Pattern == "/static/{name}" {
			continue
		}
		if !strings.Contains(string(text), "`"+strings.TrimSuffix(r.Pattern, "{$}")+"`") {
			t.Errorf("docs/reference/dashboard-pages.md lacks %s", name)
		}
	}
}

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
	operationtest.Golden(t, filepath.Join("testdata", "roles.txt"), []byte(got))
}
