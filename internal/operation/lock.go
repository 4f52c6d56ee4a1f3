package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of waiting for a lock.
const (
	lockWait = 10 * time.Second
	// lockQuiet is how long a call waits before its client is told that it waits.
	lockQuiet = 200 * time.Millisecond
)

// Locks keep two calls from writing one folder at once, also those of other processes that share a state folder. A lock
// goes with the process that has it.
type Locks struct {
	dir  string
	wait time.Duration
	mu   sync.Mutex
	held map[string]chan struct{} // by folder; full while it is taken
}

// NewLocks makes locks whose files are in a folder, which need not exist. "" keeps calls of this process alone apart.
func NewLocks(dir string) *Locks {
	return &Locks{dir: dir, wait: lockWait, held: map[string]chan struct{}{}}
}

// takeAll takes the locks of several folders, always in the same order, so that no two calls wait for each other.
// progress is called if it has to wait.
func (l *Locks) takeAll(ctx context.Context, folders []string, progress func(string)) (release func(), refused *Fault) {
	var taken []func()
	release = func() {
		for _, one := range slices.Backward(taken) {
			one()
		}
	}
	real := make([]string, len(folders))
	for i, folder := range folders {
		real[i] = files.Resolve(folder)
	}
	slices.Sort(real)
	for _, folder := range slices.Compact(real) {
		waiting := time.AfterFunc(lockQuiet, func() { progress("waiting for another call that writes the same folder") })
		one, refused := l.acquire(ctx, folder)
		waiting.Stop()
		if refused != nil {
			release()
			return nil, refused
		}
		taken = append(taken, one)
	}
	return release, nil
}

// acquire waits for the lock of a folder, some seconds at most.
func (l *Locks) acquire(ctx context.Context, folder string) (release func(), refused *Fault) {
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	busy := newFault(ReasonBusy, fault.Conflict, "another call writes %s; try again when it has ended", folder)
	l.mu.Lock()
	turn := l.held[folder]
	if turn == nil {
		turn = make(chan struct{}, 1)
		l.held[folder] = turn
	}
	l.mu.Unlock()
	select {
	case turn <- struct{}{}: // nobody is waited for, so that it does not matter how late it is
	default:
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return nil, busy
		}
	}
	file, refused := l.takeFile(ctx, folder, busy)
	if refused != nil {
		<-turn
		return nil, refused
	}
	return func() {
		if file != nil {
			_ = file.Close()
		}
		<-turn
	}, nil
}

// takeFile locks the folder's file, whose name is a hash since the folder may not exist yet.
func (l *Locks) takeFile(ctx context.Context, folder string, busy *Fault) (*os.File, *Fault) {
	if l.dir == "" {
		return nil, nil
	}
	sum := sha256.Sum256([]byte(folder))
	if err := files.MkdirAll(l.dir, 0o700); err != nil {
		return nil, unlockable(err)
	}
	file, err := files.OpenLock(filepath.Join(l.dir, hex.EncodeToString(sum[:16])+".lock"))
	if err != nil {
		return nil, unlockable(err)
	}
	if err = files.Lock(ctx, file, true); err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, ctx.Err()) {
		return nil, busy
	}
	return nil, unlockable(err)
}

func unlockable(err error) *Fault {
	return &Fault{Reason: ReasonOurs,
		General: fault.Wrap(err, fault.Misconfigured, "a lock in the state folder cannot be taken: %s", err)}
}
