//go:build live

package github_test

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// TestLive holds the adapter against a real GitHub; see liveSettingsFrom for what it takes. It makes private
// repositories named claude-ops-live-..., and removes them, and touches no other; those of a run that was killed are to
// be deleted by hand. It is to run with -parallel 1. With a second between writes, of which there are some 1,250, it
// takes about an hour, and more when GitHub asks for longer waits.
func TestLive(t *testing.T) {
	set, err := liveSettingsFrom(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	h := newLive(t, set, nil)
	h.rehearse(t)
	providertest.Run(t, h)
}
