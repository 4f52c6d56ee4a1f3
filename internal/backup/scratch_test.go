package backup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/backup"
	"github.com/claudeops/claudeops/internal/store"
)

func TestTheNextBackupRemovesWhatKilledOnesHaveLeftAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	make := func(name string, files ...string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(dir, name, file), []byte(key), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	make(".claudeops-backup-1", "lock", "claudeops.db", "backup.tar")
	make(".claudeops-backup-2")         // killed before it had a lock
	make(".claudeops-backup-3", "mine") // not as backups make them
	make("claudeops-backup-4", "lock")
	if err := os.Symlink("claudeops-backup-4", filepath.Join(dir, ".claudeops-backup-5")); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.WriteFile(context.Background(), source(), filepath.Join(dir, "b.tar"), false); err != nil {
		t.Fatal(err)
	}
	const want = ".claudeops-backup-3 .claudeops-backup-5 b.tar claudeops-backup-4"
	if got := names(t, dir); got != want || names(t, filepath.Join(dir, "claudeops-backup-4")) != "lock" {
		t.Errorf("left: %s, want %s", got, want)
	}
}

func TestABackupLeavesThoseAloneThatOthersAreMaking(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	src, copying, goOn := source(), make(chan struct{}), make(chan struct{})
	write := src.Copy
	src.Copy = func(ctx context.Context, path string) (store.Copied, error) {
		close(copying)
		<-goOn
		return write(ctx, path)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := backup.WriteFile(ctx, src, filepath.Join(dir, "slow.tar"), false)
		ended <- err
	}()
	<-copying
	if _, err := backup.WriteFile(ctx, source(), filepath.Join(dir, "quick.tar"), false); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); !strings.HasPrefix(got, ".claudeops-backup-") {
		t.Errorf("the workplace of the slow one is gone: %s", got)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := names(t, dir); got != "quick.tar slow.tar" {
		t.Errorf("left: %s", got)
	}
}
