package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/web/metrics"
)

func TestMetricsSayHowManyRequestsAreLeftAtAProvider(t *testing.T) {
	t.Parallel()
	left := map[string]int{}
	w := newWorld(t, func(w *world) { w.web.Providers.Remaining = func() map[string]int { return left } })
	const name = "claudeops_provider_requests_remaining"
	if text := string(w.get("/metrics").body); strings.Contains(text, name) {
		t.Errorf("it is known before anybody said it:\n%s", text)
	}
	left["github"] = 4711
	if text := string(w.get("/metrics").body); !strings.Contains(text, name+`{provider="github"} 4711`) {
		t.Errorf("not in %s", text)
	}
}

func TestMetricsSayHowLongProvidersTook(t *testing.T) {
	t.Parallel()
	latency := metrics.NewProviderLatency()
	w := newWorld(t, func(w *world) { w.web.Providers.Latency = latency })
	latency.Observe("github", "2xx", 40*time.Millisecond)
	latency.Observe("github", "2xx", 3*time.Second)
	latency.Observe("gitea", "timeout", 30*time.Second)
	const name = "claudeops_provider_request_duration_seconds"
	text := string(w.get("/metrics").body)
	for _, want := range []string{
		`_bucket{outcome="2xx",provider="github",le="0.05"} 1`, `_bucket{outcome="2xx",provider="github",le="5"} 2`,
		`_sum{outcome="2xx",provider="github"} 3.04`, `_count{outcome="timeout",provider="gitea"} 1`,
	} {
		if !strings.Contains(text, name+want) {
			t.Errorf("%s%s is missing in\n%s", name, want, text)
		}
	}
}
