package web_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

func TestAForgeThatDoesNotServeUsTakesOneRowAndTheRestStays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  *fault.Error
		says string
	}{
		"down":          {fault.New(fault.UpstreamError, "it failed (503)"), "The forge second does not answer"},
		"silent":        {fault.New(fault.Timeout, "no answer"), "The forge second does not answer"},
		"token refused": {fault.New(fault.ProviderDisabled, "refused (401)"), "The forge second refuses our token"},
		"too often":     {fault.New(fault.RateLimited, "no more"), "The forge second asks us to wait"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w, second := twoForges(t, &log)
			w.get("/readyz?providers=1")
			if d := w.page("/", 200); strings.Contains(d.text, "The forge second") {
				t.Error("a forge that answers has a row")
			}
			second.Script.FailBefore(forgetest.MethodPing, tt.err)
			w.advance(time.Minute)
			w.get("/readyz?providers=1")
			for _, page := range []string{"/", "/changes", "/changes/forges", "/doctor"} {
				w.page(page, 200).has(tt.says)
			}
			w.advance(time.Minute)
			w.get("/readyz?providers=1")
			if d := w.page("/changes", 200); strings.Contains(d.text, "The forge second") {
				t.Error("a forge that answers again has a row")
			}
		})
	}
}

// Looking at pages shows it, too: it causes a check of the forges, and waits for none.
func TestLookingAtPagesHasTheForgesAsked(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, second := twoForges(t, &log)
	second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.UpstreamError, "it failed (503)"))
	for end := time.Now().Add(time.Minute); !strings.Contains(w.page("/", 200).text, "The forge second does not answer"); {
		if time.Now().After(end) {
			t.Fatal("nobody asked")
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.page("/audit", 200).has("The forge second does not answer") // beside the navigation
}

// Page, frame, REST, probe and metrics read one health: where one says that a forge is down, none says that all is
// well.
func TestEveryWayInSaysTheSameOfTheHealth(t *testing.T) {
	var log bytes.Buffer
	w, second := twoForges(t, &log)
	w.verify()
	w.want(w.get("/healthz?detail=1"), 200, "")
	for _, down := range []bool{false, true, false} {
		if down { // for one call, which is remembered for half a minute
			second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.UpstreamError, "it failed (503)"))
		}
		w.advance(time.Minute)
		began := w.Now().UTC().Format(time.RFC3339)
		detail, rest := w.get("/healthz?detail=1"), w.get("/api/v1/health")
		health, _ := detail.json["health"].(map[string]any)
		if fmt.Sprint(health["findings"]) != fmt.Sprint(rest.json["findings"]) || rest.json["can_open"] != !down {
			t.Errorf("down %t: the probe says %s, REST %s", down, detail.body, rest.body)
		}
		part := ""
		for _, f := range rest.json["findings"].([]any) {
			if f := f.(map[string]any); f["name"] == "provider second" {
				part = fmt.Sprint(f["status"], " ", f["stops"], " ", f["since"])
			}
		}
		want := map[bool]string{true: "problem proposals at second " + began, false: "ok <nil> "}[down]
		if !strings.HasPrefix(part, want) {
			t.Errorf("down %t: REST says %q, want %q", down, part, want)
		}
		text := string(w.get("/metrics").body)
		for line, holds := range map[string]bool{
			`claudeops_health_part{blocks="true",part="provider second",status="problem"} 1`: down,
			`claudeops_health_part{blocks="false",part="provider second",status="ok"} 1`:     !down,
			"\nclaudeops_can_open 1\n": !down,
		} {
			if strings.Contains(text, line) != holds {
				t.Errorf("down %t: metrics have %s: %t", down, line, !holds)
			}
		}
		for _, page := range []string{"/", "/audit", "/doctor"} {
			shown := w.page(page, 200).text
			if strings.Contains(shown, "The forge second does not answer") != down ||
				strings.Contains(shown, "Healthy") == down ||
				down && (strings.Contains(shown, "Nothing here would stop") || strings.Contains(shown, "Server health Good")) {
				t.Errorf("down %t: %s says %s", down, page, shown)
			}
		}
	}
	strangers := newWorld(t, strangers)
	if a := strangers.get("/healthz?detail=1"); a.StatusCode != 200 || strings.Contains(string(a.body), "findings") {
		t.Errorf("a stranger is told %d %s", a.StatusCode, a.body)
	}
}
