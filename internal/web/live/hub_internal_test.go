package live

import (
	"testing"
	"time"
)

// A stream ends within two seconds of its caller's login; see TestAStreamEndsWithTheTokenOrTheSessionOfItsCaller.
func TestCallersAreRecognisedAgainEveryTwoSeconds(t *testing.T) {
	t.Parallel()
	if got := (Limits{}).withDefaults().Recheck; got <= 0 || got > 2*time.Second {
		t.Error(got)
	}
}
