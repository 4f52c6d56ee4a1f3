package change

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/system/filelock"
)

// How long another process that deploys is waited for.
const (
	lockTime = time.Minute
	lockPoll = 10 * time.Millisecond
)

// lock keeps other processes from changing anything until the returned function is called, or this process ends. With
// exclusive, it keeps them from looking, too. E_LOCKED if another takes longer than a minute.
func (s State) lock(ctx context.Context, exclusive bool) (unlock func(), err error) {
	name := filepath.Join(s.dir, "lock")
	f, err := s.openLock(name, exclusive)
	if !exclusive && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return func() {}, nil // nothing was ever deployed, or this process may not write here, so that it can only look
	}
	if err != nil {
		return nil, IOError(name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for {
		taken, err := filelock.Try(f, exclusive)
		if taken {
			return func() { _ = f.Close() }, nil
		}
		if err != nil {
			_ = f.Close()
			return nil, IOError(name, err)
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			_ = f.Close()
			return nil, NewError(Locked, "locked", []string{"retry_command"},
				"another process has been deploying all the time that this one waited").Because(ctx.Err())
		}
	}
}

// TryLock keeps other processes from taking a lock of the state until unlock is called, or this process ends. ok is
// false if another has it.
func (s State) TryLock(name string) (unlock func(), ok bool, err error) {
	name = filepath.Join(s.dir, name)
	f, err := s.openLock(name, true)
	if err != nil {
		return nil, false, IOError(name, err)
	}
	taken, err := filelock.Try(f, true)
	if !taken {
		_ = f.Close()
		if err != nil {
			err = IOError(name, err)
		}
		return nil, false, err
	}
	return func() { _ = f.Close() }, true, nil
}

func (s State) openLock(name string, create bool) (*os.File, error) {
	if !create {
		return os.OpenFile(name, os.O_RDWR, 0)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
}
