package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/processtree"
)

// treeLockName is the file in the state folder whose lock lasts as long as a session has processes: whoever keeps them
// together has inherited it, and holds it when the supervisor has been killed.
const treeLockName = "session-processes.lock"

// treePause is how often the lock is tried.
const treePause = 20 * time.Millisecond

// hold keeps the processes of one session apart from those of the next.
type hold struct {
	lock  *os.File
	group string // the control group of its processes; "" for none
}

// takeHold waits until no process of an earlier session runs, and keeps the next session from starting. conflict if some
// run still after Limits.Clear.
func (s Settings) takeHold(ctx context.Context) (*hold, error) {
	name := filepath.Join(s.StateDir, treeLockName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) // #nosec G304: the operator's folder
	if err != nil {
		return nil, fault.Wrap(err, fault.Misconfigured, "the lock %s cannot be opened; check the folder and its permissions (CLAUDEOPS_STATE_DIR)", name)
	}
	bounded, cancel := context.WithTimeout(ctx, s.Limits.Clear)
	defer cancel()
	for {
		taken, err := tryLock(f)
		switch {
		case err != nil:
			return nil, errors.Join(fault.Wrap(err, fault.Internal, "the lock %s cannot be taken; is the folder on a local disk?", name), f.Close())
		case taken:
			return &hold{lock: f}, nil
		case bounded.Err() != nil:
			return nil, errors.Join(fault.New(fault.Conflict,
				"processes of the last session have not ended yet; try again in a minute, or end them (its record may name them)"), f.Close())
		}
		timer := time.NewTimer(treePause)
		select {
		case <-timer.C:
		case <-bounded.Done():
			timer.Stop()
		}
	}
}

// options are those of the session's process tree.
func (h *hold) options(mark string, grace time.Duration) processtree.Options {
	o := processtree.Options{Grace: grace, Mark: mark}
	if h != nil {
		o.Group, o.Keep = h.group, []*os.File{h.lock}
	}
	return o
}

// drop gives up this process's part: the lock lasts until the session's processes have ended.
func (h *hold) drop() error {
	if h == nil {
		return nil
	}
	return errors.Join(processtree.RemoveGroup(h.group), h.lock.Close())
}
