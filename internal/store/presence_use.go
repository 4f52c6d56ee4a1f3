package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/filelock"
)

// useName is the file whose lock every process shares for as long as it has the database of the folder open. Who restores
// holds it alone.
const useName = "claudeops.use"

// shareUse takes the lock that users of the database share; whoever restores is waited for, as long as for a busy database.
// nil without an error is for a folder that only others can write: nobody can restore there while it is so.
func (p place) shareUse(ctx context.Context, busy time.Duration) (*os.File, error) {
	f, err := p.openUse()
	if errors.Is(err, fs.ErrPermission) || isReadOnlyDisk(err) {
		return nil, nil
	}
	if err != nil {
		return nil, p.failFile(err)
	}
	for waited := time.Duration(0); ; waited += lockPoll {
		taken, err := filelock.Try(f, false)
		if err != nil {
			return nil, errors.Join(p.failFile(err), f.Close())
		}
		if taken {
			return f, nil
		}
		if waited >= busy {
			_ = f.Close()
			return nil, fault.New(fault.Internal, "the records in the state folder %s are being restored; try again when that is done", p.dir)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fault.From(ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// aloneInUse takes the lock for a restore. conflict if any process, this one included, has the database open.
func (p place) aloneInUse() (*os.File, error) {
	f, err := p.openUse()
	if err != nil {
		return nil, p.failFile(err)
	}
	taken, err := filelock.Try(f, true)
	if err == nil && taken {
		return f, nil
	}
	_ = f.Close()
	if err != nil {
		return nil, p.failFile(err)
	}
	return nil, fault.New(fault.Conflict, "another process uses the state folder %s; end every claudeops there, servers and agents, "+
		"and restore again", p.dir)
}

func (p place) openUse() (*os.File, error) {
	name := filepath.Join(p.dir, useName)
	if err := createFile(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.OpenFile(name, os.O_RDWR, 0)
}
