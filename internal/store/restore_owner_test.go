//go:build unix && !postgres

package store

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
)

func TestAFolderOfAnotherUserIsNotRestoredInto(t *testing.T) {
	path, _ := copied(t, "new")
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	} else {
		dir = "/" // of root, in every case
	}
	_, err := restoreInto(t, dir, path, "", nil)
	wantCode(t, err, fault.Conflict)
	if os.Geteuid() == 0 {
		wantEqual(t, len(tree(t, dir)), 0)
	}
}
