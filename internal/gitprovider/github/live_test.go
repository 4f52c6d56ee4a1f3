//go:build live

package github_test

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// TestLive walks through everything that the adapter does on a real GitHub; see liveSettings. It makes one private
// repository named claude-ops-live-..., removes it, and touches no other. It takes some minutes, a second for each
// write.
func TestLive(t *testing.T) {
	set, err := liveSettingsFrom(os.Getenv)
	must.Do(t, err)
	requests := walk(t, set, transport.Sleep)
	if t.Logf("%d requests", requests); requests >= maxLiveRequests {
		t.Errorf("that is more than %d", maxLiveRequests)
	}
}
