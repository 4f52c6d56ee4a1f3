package web_test

import (
	"strings"
	"testing"
)

func TestMetricsSayHowManyRequestsAreLeftAtAProvider(t *testing.T) {
	left := map[string]int{}
	w := newWorld(t, func(w *world) { w.web.Remaining = func() map[string]int { return left } })
	const name = "claudeops_provider_requests_remaining"
	if text := string(w.get("/metrics").body); strings.Contains(text, name) {
		t.Errorf("it is known before anybody said it:\n%s", text)
	}
	left["github"] = 4711
	if text := string(w.get("/metrics").body); !strings.Contains(text, name+`{provider="github"} 4711`) {
		t.Errorf("not in %s", text)
	}
}
