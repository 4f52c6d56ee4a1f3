package transport_test

import (
	"context"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/system/transport"
)

func TestSleepEndsWithTheTimeOrTheContext(t *testing.T) {
	clock := transport.Clock{}.WithDefaults()
	clock.Sleep(t.Context(), time.Nanosecond)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	clock.Sleep(ended, 24*time.Hour)
}
