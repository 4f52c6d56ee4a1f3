package files_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestLockWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	first, err := files.OpenLock(name)
	must.Do(t, err)
	second, err := files.OpenLock(name)
	must.Do(t, err)
	t.Cleanup(func() { _ = second.Close() })
	must.Do(t, files.Lock(t.Context(), first, true))
	ended, end := context.WithCancel(t.Context())
	end()
	if err := files.Lock(ended, second, false); !errors.Is(err, context.Canceled) {
		t.Errorf("beside an exclusive lock: %v", err)
	}
	got := make(chan error)
	go func() { got <- files.Lock(t.Context(), second, true) }()
	must.Do(t, first.Close())
	if err := <-got; err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
	if err := files.Lock(ended, second, true); err != nil {
		t.Errorf("a free lock is not tried when the context has ended: %v", err)
	}
}
