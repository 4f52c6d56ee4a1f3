package github_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

func TestAPingTellsWhetherGitHubServesUs(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/rate_limit" {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		_, _ = w.Write([]byte(`{"resources":{"core":{"limit":5000,"remaining":1,"reset":1}}}`))
	})
	for _, tt := range []struct {
		name  string
		fault *httpfault.Fault
		code  fault.Code // "" for an answer that is good
	}{
		{"it answers", nil, ""},
		{"the token was revoked", &httpfault.Fault{Kind: httpfault.Status, Status: 401,
			Body: `{"message":"Bad credentials"}`}, fault.ProviderDisabled},
		{"it is down", &httpfault.Fault{Kind: httpfault.Status, Status: 503, Body: `{"message":"x"}`}, fault.UpstreamError},
		{"it resets connections", &httpfault.Fault{Kind: httpfault.ResetBefore}, fault.UpstreamError},
		{"it comes too often", &httpfault.Fault{Kind: httpfault.Status, Status: 403,
			Header: http.Header{"Retry-After": {"60"}},
			Body:   `{"message":"You have exceeded a secondary rate limit"}`}, fault.RateLimited},
		{"an Enterprise Server without limits", &httpfault.Fault{Kind: httpfault.Status, Status: 404,
			Body: `{"message":"Rate limiting is not enabled."}`}, ""},
		{"no API is there", &httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: `{"message":"Not Found"}`},
			fault.NotFound},
		{"a portal answers with a page", &httpfault.Fault{Kind: httpfault.HTML}, fault.UpstreamError},
		{"something else answers", &httpfault.Fault{Kind: httpfault.Status, Status: 200, Body: `{"ok":true}`},
			fault.UpstreamError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faults, root := script(t, answers)
			if tt.fault != nil {
				faults.PlanFrom(1, *tt.fault)
			}
			err := setup(t, root, secret).Ping(t.Context())
			if tt.code == "" {
				must(t, err)
				return
			}
			if e := wantCode(t, err, tt.code); strings.Contains(e.Error(), secret) {
				t.Errorf("the token is in %v", e)
			}
		})
	}
}

func TestAPingOfAGitHubThatHangsEndsWithItsDeadline(t *testing.T) {
	faults, root := script(t, http.NotFoundHandler())
	faults.PlanFrom(1, httpfault.Fault{Kind: httpfault.Stall})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantCode(t, setup(t, root, "token").Ping(ctx), fault.Timeout)
}
