package local_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/local"
)

// TestWhatKilledProcessesLeftIsRemovedADayLater has folders of the names that a killed process leaves in the folder for
// temporary files.
func TestWhatKilledProcessesLeftIsRemovedADayLater(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	temp, outside := t.TempDir(), t.TempDir()
	keep := filepath.Join(outside, "keep")
	old := time.Now().Add(-25 * time.Hour)
	for _, dir := range []string{"claudeops-git-old/objects", "claudeops-git-new", "other-old"} {
		w.must(os.MkdirAll(filepath.Join(temp, dir), 0o700))
	}
	for _, file := range []string{keep, filepath.Join(temp, "claudeops-git-old/objects/pack"),
		filepath.Join(temp, "claudeops-git-file")} {
		w.must(os.WriteFile(file, []byte("x"), 0o600))
	}
	w.must(os.Symlink(outside, filepath.Join(temp, "claudeops-git-link")))
	for _, name := range []string{"claudeops-git-old", "other-old", "claudeops-git-file"} {
		w.must(os.Chtimes(filepath.Join(temp, name), old, old))
	}
	_, err := w.provider(local.Options{TempDir: temp}).Commit(t.Context(),
		w.request("claude-ops/check/disk", disk("new\n")))
	w.must(err)
	var left []string
	entries, err := os.ReadDir(temp)
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if want := []string{"claudeops-git-file", "claudeops-git-link", "claudeops-git-new", "other-old"}; err != nil ||
		!slices.Equal(left, want) {
		t.Errorf("left: %q, %v, want %q", left, err, want)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}
