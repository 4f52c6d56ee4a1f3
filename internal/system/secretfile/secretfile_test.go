package secretfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/claudeops/claudeops/internal/system/secretfile"
)

func TestAFileIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var made atomic.Int64
	const callers = 16
	got := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			text, err := secretfile.Load(dir, "token", func() (string, error) { return string(rune('a' + made.Add(1))), nil })
			if err != nil {
				t.Error(err)
			}
			got[i] = text
		})
	}
	wg.Wait()
	for _, text := range got {
		if text == "" || text != got[0] {
			t.Fatalf("got %q and %q", text, got[0])
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder holds %v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	again, err := secretfile.Load(dir, "token", func() (string, error) { return "", errors.New("made twice") })
	if again != got[0] || err != nil {
		t.Errorf("got %q, %v", again, err)
	}
}

func TestAFileThatCannotBeMadeIsAnError(t *testing.T) {
	dir := t.TempDir()
	if _, err := secretfile.Load(dir, "token",
		func() (string, error) { return "", errors.New("no entropy") }); err == nil {
		t.Error("a file was made of nothing")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secretfile.Load(filepath.Join(file, "state"), "token",
		func() (string, error) { return "x", nil }); err == nil {
		t.Error("a folder below a file was made")
	}
}
