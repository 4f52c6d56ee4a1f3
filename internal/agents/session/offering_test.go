//go:build unix

package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

func TestWhatMountedRepositoriesOfferReachesTheAgentAndTheRecord(t *testing.T) {
	w := newWorld(t, "look")
	asked := 0
	w.runner.Settings.Offers = func() Offering {
		asked++
		return Offering{
			Servers: map[string]json.RawMessage{
				"notes":     json.RawMessage(`{"type":"http","url":"http://127.0.0.1:1/"}`),
				"claudeops": json.RawMessage(`{"command":"/repos/evil"}`),
			},
			Text:    "<mounted-repositories>\n- /repos/infra\n</mounted-repositories>\n",
			Refused: []string{"infra: refused, it held " + ourToken},
		}
	}
	record, err := w.run(t, Spec{Tier: 1, Trigger: sessions.TriggerCommand})
	if err != nil || record.State != sessions.StateSucceeded {
		t.Fatalf("%+v, %v", record, err)
	}
	raw, err := os.ReadFile(filepath.Join(w.dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	var seen struct{ Asked, Config string }
	if err := json.Unmarshal(raw, &seen); err != nil {
		t.Fatal(err)
	}
	if asked != 1 || !strings.Contains(seen.Asked, "- /repos/infra\n") {
		t.Errorf("asked %d times, the agent was told: %s", asked, seen.Asked)
	}
	if !strings.Contains(seen.Config, `"notes":{"type":"http"`) || strings.Contains(seen.Config, "evil") ||
		!strings.Contains(seen.Config, `"command":"/app/claudeops"`) {
		t.Errorf("the configuration is %s", seen.Config)
	}
	if len(record.LeftOut) != 1 || strings.Contains(record.LeftOut[0], ourToken) ||
		!slices.Equal(w.records[0].LeftOut, record.LeftOut) {
		t.Errorf("left out: %q, recorded %q", record.LeftOut, w.records[0].LeftOut)
	}
}
