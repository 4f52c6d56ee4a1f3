package session

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/processtree"
)

// processLockName is the file in the state folder whose lock lasts as long as a session has processes: the reaper above
// them has inherited it, and keeps it when the supervisor has been killed.
const processLockName = "session-processes.lock"

// lockRetry is how often the lock is tried.
const lockRetry = 20 * time.Millisecond

// processes keeps those of one session apart from those of the next.
type processes struct {
	lock  *os.File
	group string // their control group; "" for none
}

// lockProcesses waits until no process of an earlier session runs, and keeps the next session from starting. conflict if
// some run still after that time.
func (f Folders) lockProcesses(ctx context.Context, atMost time.Duration) (*processes, error) {
	file, err := f.openLock(processLockName)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		taken, err := tryLock(file)
		switch {
		case err != nil:
			return nil, errors.Join(err, file.Close())
		case taken:
			return &processes{lock: file}, nil
		case bounded.Err() != nil:
			return nil, errors.Join(fault.New(fault.Conflict,
				"processes of the last session have not ended yet; try again in a minute, or end them (its record may name them)"), file.Close())
		}
		timer := time.NewTimer(lockRetry)
		select {
		case <-timer.C:
		case <-bounded.Done():
			timer.Stop()
		}
	}
}

// options are those of the session's process tree.
func (p *processes) options(mark string, grace time.Duration) processtree.Options {
	o := processtree.Options{Grace: grace, Mark: mark}
	if p != nil {
		o.Group, o.Keep = p.group, []*os.File{p.lock}
	}
	return o
}

// release gives up this process's part: the lock lasts until the session's processes have ended.
func (p *processes) release() error {
	if p == nil {
		return nil
	}
	return errors.Join(processtree.RemoveGroup(p.group), p.lock.Close())
}
