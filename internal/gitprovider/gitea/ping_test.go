package gitea_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

func TestAPingTellsWhetherGiteaServesUs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault httpfault.Fault
		code  fault.Code
	}{
		{"it is down", httpfault.Fault{Kind: httpfault.Status, Status: 503}, fault.UpstreamError},
		{"it resets connections", httpfault.Fault{Kind: httpfault.ResetBefore}, fault.UpstreamError},
		{"a portal answers with a page", httpfault.Fault{Kind: httpfault.HTML}, fault.UpstreamError},
		{"something else answers", httpfault.Fault{Kind: httpfault.Status, Status: 200, Body: `{"ok":true}`},
			fault.UpstreamError},
		{"no API is there", httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: "404 page not found\n"},
			fault.ProviderDisabled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sc := newScene(t)
			sc.s.Faults().PlanFrom(1, tt.fault)
			if err := sc.p.Ping(t.Context()); fault.CodeOf(err) != tt.code {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
	sc := newScene(t)
	if err := sc.p.Ping(t.Context()); err != nil || strings.Join(sc.asked(), " ") != "GET /api/v1/version" {
		t.Errorf("it answers: %v", err)
	}
	const other = "a-token-that-was-revoked"
	err := newProvider(t, sc.s.URL(), other).Ping(t.Context())
	if fault.CodeOf(err) != fault.ProviderDisabled || strings.Contains(err.Error(), other) {
		t.Errorf("the token was revoked: %v", err)
	}
	sc.s.Faults().PlanFrom(1, httpfault.Fault{Kind: httpfault.Stall})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := sc.p.Ping(ctx); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("it hangs: %v", err)
	}
}
