package local_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
)

func (w *world) looks(p *local.Provider) error {
	_, err := p.ListOpen(w.t.Context(), w.Ref(), gitprovider.LabelOurs)
	return err
}

func TestARootGetsOneIdentityOfManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	if id := local.RootIdentity(w.root); id != "" {
		t.Fatalf("it has %q before anybody uses it", id)
	}
	var all sync.WaitGroup
	for range 8 {
		p := w.provider(local.Options{TempDir: t.TempDir()})
		all.Go(func() {
			if err := w.looks(p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	id := local.RootIdentity(w.root)
	if len(id) < 16 {
		t.Errorf("identity %q", id)
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, local.RootFile+".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	info, err := os.Stat(filepath.Join(w.root, local.RootFile))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v: every server that shares the root reads it", info.Mode(), err)
	}
}

func TestARootWhoseIdentityCannotBeReadServesNothing(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(name string) error{
		"a folder":        func(name string) error { return os.Mkdir(name, 0o700) },
		"an empty file":   func(name string) error { return os.WriteFile(name, nil, 0o600) },
		"something else":  func(name string) error { return os.WriteFile(name, []byte("NOT AN IDENTITY\n"), 0o600) },
		"too much of one": func(name string) error { return os.WriteFile(name, make([]byte, 1000), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := home(t, bare())
			file := filepath.Join(w.root, local.RootFile)
			if err := place(file); err != nil {
				t.Fatal(err)
			}
			if err := w.looks(w.provider(local.Options{TempDir: t.TempDir()})); fault.CodeOf(err) != fault.ProviderDisabled {
				t.Errorf("got %v", err)
			}
			if id := local.RootIdentity(w.root); id == "" || len(id) >= 16 {
				t.Errorf("identity %q", id)
			}
		})
	}
}

func TestARootThatIsExchangedWhileAProcessRunsIsRefused(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	if err := w.looks(w.p); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.root, local.RootFile)
	if err := os.WriteFile(file, []byte("another0another0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.looks(w.p); fault.CodeOf(err) != fault.ProviderDisabled {
		t.Errorf("got %v", err)
	}
	if err := w.looks(w.provider(local.Options{TempDir: t.TempDir()})); err != nil {
		t.Errorf("a new process: %v", err)
	}
}

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
