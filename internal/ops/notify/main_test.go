package notify

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/system/processtree"
)

// TestMain lets this binary be the reaper of the commands that tests run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == processtree.ReaperCommand {
		os.Exit(processtree.Reap())
	}
	os.Exit(m.Run())
}
