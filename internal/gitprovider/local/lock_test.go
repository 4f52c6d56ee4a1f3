//go:build unix

package local

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func repositoryIn(dir string) *repository {
	return &repository{ref: gitprovider.RepoRef{Owner: "demo", Name: "home-cluster"}, gitDir: dir}
}

func mustTake(t *testing.T, repo *repository) *writeLock {
	t.Helper()
	lock, err := lockForWriting(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func isFree(t *testing.T, repo *repository) bool {
	t.Helper()
	lock, err := tryLock(repo.gitDir)
	if err != nil {
		t.Fatal(err)
	}
	if lock != nil {
		lock.unlock()
	}
	return lock != nil
}

func TestOneWriterHasTheLock(t *testing.T) {
	t.Parallel()
	repo := repositoryIn(t.TempDir())
	lock := mustTake(t, repo)
	if isFree(t, repo) {
		t.Error("two have the lock at once")
	}
	lock.unlock()
	if !isFree(t, repo) {
		t.Error("the lock did not end")
	}
}

func TestWaitingForALockEndsWithTheContext(t *testing.T) {
	t.Parallel()
	repo := repositoryIn(t.TempDir())
	defer mustTake(t, repo).unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lockForWriting(ctx, repo); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("got %v, want a timeout", err)
	}
}

// readerWith has a function called when it is read first.
type readerWith struct {
	io.Reader
	first func()
	once  sync.Once
}

func (r *readerWith) Read(p []byte) (int, error) {
	r.once.Do(r.first)
	return r.Reader.Read(p)
}

// What a killed process leaves behind is a git command that has inherited its lock.
func TestALockLastsUntilTheCommandThatInheritedItHasEnded(t *testing.T) {
	t.Parallel()
	repo := repositoryIn(t.TempDir())
	lock := mustTake(t, repo)
	in := &readerWith{Reader: strings.NewReader("done\n"), first: func() { // the command runs, and waits for it
		lock.unlock()
		if isFree(t, repo) {
			t.Error("the lock ended while the command was at work")
		}
	}}
	g := newRunner("", "", lockWait, identity{})
	if out, _, err := g.runGit(t.Context(), gitCommand{args: []string{"stripspace"}, lock: lock, stdin: in}); err != nil ||
		string(out) != "done\n" {
		t.Fatalf("%q, %v", out, err)
	}
	if !isFree(t, repo) {
		t.Error("the lock outlasted the command")
	}
}

func TestAFolderThatIsGoneGivesNoLock(t *testing.T) {
	t.Parallel()
	_, err := lockForWriting(t.Context(), repositoryIn(t.TempDir()+"/gone"))
	if fault.CodeOf(err) != fault.UpstreamError {
		t.Errorf("got %v, want an upstream error", err)
	}
}
