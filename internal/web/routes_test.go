package web

import (
	"slices"
	"testing"

	"github.com/claudeops/claudeops/internal/forges"
)

// KnownWebhooks are those of every forge, signed with the secret.
func KnownWebhooks(secret string) (out []Webhook) {
	for _, d := range forges.All() {
		out = append(out, Webhook{Source: d.Webhooks, Secret: secret})
	}
	return out
}

// openRoutes are the routes that answer whoever asks: probes, what signing in needs, and webhooks, which are signed.
func openRoutes() []string {
	return []string{
		"GET /healthz", "GET /readyz", "GET /sign-in", "POST /sign-in", "POST /sign-out", "GET /static/{name}",
		"POST /webhooks/github", "POST /webhooks/gitea",
	}
}

func TestEveryOtherRouteAsksForAScope(t *testing.T) {
	s := &Server{Options: Options{Webhooks: KnownWebhooks("")}}
	s.hub = &hub{}
	open := []string{}
	for _, r := range append(s.routes(), s.pageRoutes()...) {
		if r.scope == "" {
			open = append(open, r.method+" "+r.pattern)
		}
		if _, err := boundOf(r); err != nil {
			t.Error(err)
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
	for pattern, most := range map[string]int64{"/sign-in": 4 << 10, "/webhooks/github": 1 << 20, "/webhooks/gitea": 1 << 20} {
		if bound, err := boundOf(route{method: "POST", pattern: pattern}); err != nil || bound.bytes != most || bound.within != openBodyTime {
			t.Errorf("%s: %+v, %v", pattern, bound, err)
		}
	}
	if _, err := boundOf(route{method: "POST", pattern: "/new"}); err == nil {
		t.Error("a route without a bound is served")
	}
}
