package local

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Git removes empty folders below refs whenever a reference goes, and makes them again for the next.
func TestFoldersThatComeAndGoAreNoFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := layout{ctx: t.Context(), repo: &repository{root: dir, gitDir: dir,
		ref: gitprovider.RepoRef{Owner: "o", Name: "r"}}}
	stop := make(chan struct{})
	var git sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		git.Go(func() {
			folder := filepath.Join(dir, "refs", "heads", "claude-ops", name)
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = os.MkdirAll(folder, 0o750)
				_ = os.Remove(folder)
				_ = os.WriteFile(folder, nil, 0o600) // a branch that has the folder's name
				_ = os.Remove(folder)
			}
		})
	}
	for range 20_000 {
		if err := l.walk(filepath.Join(dir, "refs")); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	git.Wait()
}
