package web

import (
	"slices"
	"testing"
)

// openRoutes are the routes that answer whoever asks: probes, what signing in needs, and webhooks, which are signed.
func openRoutes() []string {
	return []string{
		"GET /healthz", "GET /readyz", "GET /sign-in", "POST /sign-in", "POST /sign-out", "GET /static/{name}",
		"POST /webhooks/github", "POST /webhooks/gitea",
	}
}

func TestEveryOtherRouteAsksForAScope(t *testing.T) {
	s := &Server{}
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
	for name, most := range map[string]int64{"POST /sign-in": 4 << 10, "POST /webhooks/github": 1 << 20, "POST /webhooks/gitea": 1 << 20} {
		if bound := bodyBounds()[name]; bound.bytes != most || bound.within != openBodyTime {
			t.Errorf("%s: %+v", name, bound)
		}
	}
	if _, err := boundOf(route{method: "POST", pattern: "/new"}); err == nil {
		t.Error("a route without a bound is served")
	}
}
