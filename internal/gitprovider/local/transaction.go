package local

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
)

// transaction is a script for git update-ref --stdin -z: all of its lines take effect, or none.
type transaction struct {
	script   strings.Builder
	branches []string
	// asked under the lock of writers, before anything is written; nil for nothing
	admitted func(ctx context.Context) error
}

// verify demands that a branch points to old.
func (t *transaction) verify(branch, old string) { t.add("verify", branch, old) }

// create makes a branch, which must not exist.
func (t *transaction) create(branch, tip string) { t.add("create", branch, tip) }

// update moves a branch from old.
func (t *transaction) update(branch, tip, old string) { t.add("update", branch, tip, old) }

// remove deletes a branch that points to old.
func (t *transaction) remove(branch, old string) { t.add("delete", branch, old) }

// git waits for the locks of branches (see refConfig), and not always for that of HEAD, which it takes when HEAD names
// one of the branches. So we do.
const (
	headLock  = "HEAD.lock"
	headWait  = 2 * time.Second
	headPause = 100 * time.Millisecond
)

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// leftLock returns a lock file that blocks the transaction, or "". git holds one for a moment; one that stays was left
// by a git that was killed.
func (t *transaction) leftLock(repo *repository) string {
	names := []string{"packed-refs"}
	for _, branch := range t.branches {
		names = append(names, headsPrefix+branch)
	}
	for _, name := range append(names, "HEAD") {
		lock := filepath.Join(repo.gitDir, filepath.FromSlash(name)+".lock")
		if _, err := files.Lstat(lock); err == nil {
			return lock
		}
	}
	return ""
}

// add writes one line. A symbolic reference is changed itself, never its target: a branch of ours that somebody
// replaced by a link to another branch must not lead a write there.
func (t *transaction) add(verb, branch string, fields ...string) {
	t.branches = append(t.branches, branch)
	t.script.WriteString("option no-deref\x00" + verb + " " + headsPrefix + branch + "\x00")
	for _, f := range fields {
		t.script.WriteString(f + "\x00")
	}
}

// update runs the transaction under the lock of writers; from then on the end of ctx no longer stops it. Why it failed
// is for the caller to find out by looking at the references.
func (repo *repository) update(ctx context.Context, t *transaction, reason string) error {
	lock, err := lockForWriting(ctx, repo)
	if err != nil {
		return err
	}
	defer lock.unlock()
	if err := repo.checkLayout(ctx); err != nil { // as late as possible: somebody may have put a link there since
		return err
	}
	if t.admitted != nil {
		if err := t.admitted(ctx); err != nil {
			return err
		}
	}
	script := "start\x00" + t.script.String() + "prepare\x00commit\x00"
	var left string
	patience, cancel := context.WithTimeout(ctx, headWait)
	defer cancel()
	for {
		_, _, err = repo.git.run(context.WithoutCancel(ctx), command{
			gitDir: repo.gitDir, config: refConfig(), stdin: strings.NewReader(script), lock: lock,
			args: []string{"update-ref", "--stdin", "-z", "-m", reason},
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		if left = t.leftLock(repo); filepath.Base(left) != headLock || patience.Err() != nil {
			break
		}
		pause(patience, headPause)
	}
	if left != "" {
		return fault.Wrap(err, fault.UpstreamError,
			"git's lock file %s is in the way; a git command that was killed left it. "+
				"Ask the operator to make sure that no git command runs there, and to remove it", left)
	}
	return err
}
