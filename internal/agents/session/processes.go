package session

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// processLockName is the file in the state folder whose lock lasts as long as a session has processes: the reaper above
// them has inherited it, and keeps it when the supervisor has been killed.
const processLockName = "session-processes.lock"

// lockRetry is the interval between attempts to take the lock.
const lockRetry = 20 * time.Millisecond

// processes keeps those of one session apart from those of the next.
type processes struct {
	lock  *os.File
	group string         // their control group; "" for none
	claim *confine.Claim // of the user that they run as; nil for ours
}

// account returns the user that they run as; nil for ours.
func (p *processes) account() *confine.Account {
	if p == nil || p.claim == nil {
		return nil
	}
	return &p.claim.Account
}

// lockProcesses waits until no process of an earlier session runs, and keeps the next session from starting. conflict
// if some run still after that time.
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
				"processes of the last session have not ended yet; try again in a minute, or end them (its record may name them)"),
				file.Close())
		}
		timer := time.NewTimer(lockRetry)
		select {
		case <-timer.C:
		case <-bounded.Done():
			timer.Stop()
		}
	}
}

// options returns the options of the session's process tree.
func (p *processes) options(mark string, grace time.Duration) processtree.Options {
	o := processtree.Options{Grace: grace, Mark: mark}
	if p != nil {
		o.Group, o.Keep = p.group, append(p.claim.Keeps(), p.lock)
	}
	return o
}

// release gives up this process's part, and what their user left: the lock and the claim last until the session's
// processes have ended.
func (p *processes) release() error {
	if p == nil {
		return nil
	}
	return errors.Join(processtree.RemoveGroup(p.group), p.claim.Release(), p.lock.Close())
}
