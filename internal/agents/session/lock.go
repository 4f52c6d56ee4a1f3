package session

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/system/filelock"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// lockName is the file in the state folder whose lock the supervisor holds while it runs sessions. The kernel drops the
// lock when the process ends, however it ends.
const lockName = "session.lock"

// lockContent is the JSON in the lock file, for people and programs that find it.
type lockContent struct {
	Session string `json:"session"`
	Folder  string `json:"folder"`
	Group   string `json:"group,omitempty"` // its control group
	Door    string `json:"door,omitempty"`  // the folder of its socket
	UID     int    `json:"uid,omitempty"`   // of its agent's user, where that is another
	GID     int    `json:"gid,omitempty"`   // of that user's group
}

// lock is the right to run sessions in one state folder.
type lock struct {
	file   *os.File
	before lockContent // what stood in it
}

// openLock opens a lock file in the state folder.
func (f Folders) openLock(name string) (*os.File, error) {
	path := filepath.Join(f.State, name)
	file, err := files.OpenLock(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Misconfigured,
			"the lock %s cannot be opened; check the folder and its permissions (CLAUDEOPS_STATE_DIR)", path)
	}
	return file, nil
}

func tryLock(f *os.File) (taken bool, err error) {
	taken, err = filelock.Try(f, true)
	if err != nil {
		return false, fault.Wrap(err, fault.Internal, "the lock %s cannot be taken; is the folder on a local disk?", f.Name())
	}
	return taken, nil
}

// takeLock takes the lock. conflict, naming the session, if a session runs already; internal if the folder cannot be
// used.
func (f Folders) takeLock() (*lock, error) {
	file, err := f.openLock(lockName)
	if err != nil {
		return nil, err
	}
	taken, err := tryLock(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	before := readLock(file)
	if !taken {
		who := "a session"
		if before.Session != "" {
			who = "session " + before.Session
		}
		return nil, errors.Join(fault.New(fault.Conflict,
			"%s is running in this state folder; wait until it ends, or stop it", who), file.Close())
	}
	return &lock{file, before}, nil
}

// removeLeftovers ends and removes what a killed supervisor, and whatever kept its processes together, left: what is in
// its session's control group or carries its mark, and its folder.
func (l *lock) removeLeftovers(users confine.Users) {
	left := l.before
	l.before = lockContent{}
	if !regexp.MustCompile(`^[0-9A-Z]{26}$`).MatchString(left.Session) || filepath.Base(left.Folder) != folderPrefix+
		left.Session {
		return
	}
	if filepath.Base(left.Group) == folderPrefix+left.Session {
		_ = processtree.RemoveGroup(left.Group) // what cannot be ended has been reported
	}
	_ = processtree.KillMarked(runMark + "=" + left.Session)
	if door.IsFolder(left.Door, left.Session) {
		_ = files.Temporary{Path: left.Door}.Remove()
	}
	if left.UID <= 0 || left.GID <= 0 {
		_ = removeFolder(left.Folder, nil) // where this fails, the system's own cleaning of temporary files is left
		return
	}
	// unless another session has the user by now, which then has ended and removed what it found
	claim, err := users.ClaimOne(left.UID)
	_ = removeFolder(left.Folder, &confine.Account{UID: left.UID, GID: left.GID})
	switch {
	case claim != nil && err == nil:
		_ = claim.Release() // which ends what runs as the user: the environment of its processes cannot be read
	case users.Usable() != nil:
		_ = processtree.KillUser(left.UID)
	}
}

func readLock(f *os.File) (c lockContent) {
	const most = 8 << 10
	text, err := io.ReadAll(io.NewSectionReader(f, 0, most))
	if err != nil || json.Unmarshal(text, &c) != nil {
		return lockContent{}
	}
	return c
}

// write says in the file which session runs.
func (l *lock) write(c lockContent) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(text, 0)
	return err
}

func (l *lock) release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}
