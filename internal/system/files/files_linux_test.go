package files_test

import (
	"errors"
	"testing"

	"github.com/claudeops/claudeops/internal/system/files"
)

// TestAFileThatHidesItsSize reads one of /proc, whose size the system gives as 0.
func TestAFileThatHidesItsSize(t *testing.T) {
	const name = "/proc/self/status"
	if text, _, err := files.ReadPath(name, 1<<20); err != nil || len(text) < 100 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, _, err := files.ReadPath(name, 100); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("more than the limit: %v", err)
	}
}
