package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAFileIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var made atomic.Int64
	const callers = 16
	got := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			text, err := files.LoadSecret(dir, "token", func() (string, error) { return string(rune('a' + made.Add(1))), nil })
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
	again, err := files.LoadSecret(dir, "token", func() (string, error) { return "", errors.New("made twice") })
	if again != got[0] || err != nil {
		t.Errorf("got %q, %v", again, err)
	}
}

func TestAFileThatCannotBeMadeIsAnError(t *testing.T) {
	dir := t.TempDir()
	if _, err := files.LoadSecret(dir, "token",
		func() (string, error) { return "", errors.New("no entropy") }); err == nil {
		t.Error("a file was made of nothing")
	}
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	if _, err := files.LoadSecret(filepath.Join(file, "state"), "token",
		func() (string, error) { return "x", nil }); err == nil {
		t.Error("a folder below a file was made")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestAFileThatChangesIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, "first\n")
	var learned []string
	f := files.NewSecretFile(path, "first", func(value string) { learned = append(learned, value) })
	want := func(step, value string) {
		t.Helper()
		if got := f.Value(); got != value {
			t.Errorf("%s: got %q, want %q", step, got, value)
		}
	}
	want("as it was", "first")
	write(t, path, "second, longer\n")
	want("overwritten", "second, longer")

	other := path + ".new"
	write(t, other, "third\n")
	must.Do(t, os.Rename(other, path))
	want("replaced", "third")

	write(t, path, "")
	want("emptied for a moment", "third")
	must.Do(t, os.Remove(path))
	want("gone for a moment", "third")
	write(t, path, strings.Repeat("x", files.MaxSecretSize+1))
	want("too large", "third")
	const fourth = "fourth, of another size" // the new file may have the number of the old one, and its time
	write(t, path, fourth)
	want("back", fourth)

	if want := []string{"second, longer", "third", fourth}; !slices.Equal(learned, want) {
		t.Errorf("learned %q, want %q", learned, want)
	}
}

func TestAChangeThatLeavesNoTraceIsSeenWhenAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	put := func(text string) {
		write(t, path, text)
		must.Do(t, os.Chtimes(path, at, at))
	}
	put("token-1")
	f := files.NewSecretFile(path, "token-1", nil)
	if got := f.Value(); got != "token-1" {
		t.Fatalf("got %q", got)
	}
	put("token-2")
	if got := f.Reread(); got != "token-2" {
		t.Errorf("got %q after it was asked for", got)
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	write(t, large, strings.Repeat("x", files.MaxSecretSize+1))
	for _, path := range []string{dir, large, filepath.Join(dir, "missing")} {
		if text, err := files.ReadSecret(path); err == nil || text != "" {
			t.Errorf("%s: got %d bytes, %v", path, len(text), err)
		}
	}
}
