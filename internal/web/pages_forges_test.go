package web_test

import (
	"bytes"
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

// Whoever only looks at pages learns of it, too: looking has the forges asked, and waits for none.
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
