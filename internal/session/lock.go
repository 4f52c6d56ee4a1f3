package session

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/processtree"
)

// lockName is the file in the state folder whose lock the supervisor holds while it runs sessions. The kernel drops the
// lock when the process ends, however it ends.
const lockName = "session.lock"

// held is what stands in the lock file, for whoever finds it.
type held struct {
	Session string `json:"session"`
	Folder  string `json:"folder"`
	Group   string `json:"group,omitempty"` // its control group
}

// lock is the right to run sessions in one state folder.
type lock struct {
	file   *os.File
	before held // what stood in it
}

// takeLock takes the lock. conflict, naming the session, if a session runs already; internal if the folder cannot be used.
func (s Settings) takeLock() (*lock, error) {
	name := filepath.Join(s.StateDir, lockName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) // #nosec G304: the operator's folder
	if err != nil {
		return nil, fault.Wrap(err, fault.Misconfigured, "the lock %s cannot be opened; check the folder and its permissions (CLAUDEOPS_STATE_DIR)", name)
	}
	taken, err := tryLock(f)
	before := readHeld(f)
	if err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Internal, "the lock %s cannot be taken; is the folder on a local disk?", name), f.Close())
	}
	if !taken {
		who := "a session"
		if before.Session != "" {
			who = "session " + before.Session
		}
		return nil, errors.Join(fault.New(fault.Conflict, "%s is running in this state folder; wait until it ends, or stop it", who), f.Close())
	}
	return &lock{f, before}, nil
}

// tidy ends and removes what a killed supervisor, and whatever kept its processes together, left: what is in its
// session's control group or carries its mark, and its folder.
func (l *lock) tidy() {
	h := l.before
	if !regexp.MustCompile(`^[0-9A-Z]{26}$`).MatchString(h.Session) || filepath.Base(h.Folder) != folderPrefix+h.Session {
		return
	}
	if filepath.Base(h.Group) == folderPrefix+h.Session {
		_ = processtree.RemoveGroup(h.Group) // what cannot be ended has been reported
	}
	_ = processtree.KillMarked(runMark + "=" + h.Session)
	_ = os.RemoveAll(h.Folder) // where this fails, the system's own cleaning of temporary files is left
}

func readHeld(f *os.File) (h held) {
	const most = 8 << 10
	text, err := io.ReadAll(io.NewSectionReader(f, 0, most))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return held{}
	}
	return h
}

// says writes which session runs.
func (l *lock) says(h held) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(text, 0)
	return err
}

// drop gives the lock back.
func (l *lock) drop() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}
