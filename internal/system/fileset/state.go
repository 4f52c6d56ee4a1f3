package fileset

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
)

// State is the folder where deployments are remembered: state/ of AGENTPACK_HOME. Contents are kept once, under their
// hash, in objects; a snapshot names the files of a moment; a journal stands there while files are being changed.
type State struct {
	dir  string
	now  func() time.Time
	seen *seenSnapshot
}

// seenSnapshot is the snapshot that was read last, as long as its file is the same.
type seenSnapshot struct {
	mu       sync.Mutex
	id       fileID
	snapshot *Snapshot
}

// newState makes a State. It touches no disk.
func newState(home string, now func() time.Time) State {
	return State{dir: filepath.Join(home, "state"), now: now, seen: &seenSnapshot{}}
}

// Now returns the state's clock.
func (s State) Now() time.Time { return s.now() }

// journal describes the change in progress: enough to finish it, and to revert it.
type journal struct {
	Snapshot Snapshot `json:"snapshot"`
	// Manifests are the contents that they will have, and had, by path; "" for none.
	Manifests map[string]string `json:"manifests"`
	Before    map[string]string `json:"manifests_before"`
	// Folders are the folders that are made, the outer ones first.
	Folders []string `json:"folders"`
	// Real are the paths of the folders that hold the files, without links.
	Real map[string]string `json:"real_folders,omitempty"`
	// Initial is the snapshot that precedes this one, if it is the first; see initial.
	Initial *Snapshot `json:"initial,omitempty"`
	Undo    bool      `json:"undo"` // it could not be finished, and is taken back
}

// maxStateBytes bounds a file of the state.
const maxStateBytes = 256 << 20

// newID returns a snapshot's id: nanoseconds since 1970, greater than those that are there.
func (s State) newID(known []string) string {
	id := s.now().UnixNano()
	for _, other := range known {
		if n, err := strconv.ParseInt(other, 10, 64); err == nil && n >= id {
			id = n + 1
		}
	}
	return strconv.FormatInt(id, 10)
}

// object returns the path of a content; see keeper.
func (s State) object(hash string) string { return filepath.Join(s.dir, "objects", hash) }

// Kept returns a content by its hash.
func (s State) Kept(hash string) ([]byte, error) {
	content, _, err := files.ReadPath(s.object(hash), maxStateBytes)
	if err != nil {
		return nil, IOError(s.object(hash), err)
	}
	if Hash(content) != hash {
		return nil, NewError(Unexpected, "state_damaged", []string{"restore_state"}, "the kept content %s was changed", hash)
	}
	return content, nil
}

// ReadFile returns a file of the state; nil if there is none.
func (s State) ReadFile(name string) ([]byte, error) {
	name = filepath.Join(s.dir, name)
	text, _, err := files.ReadPath(name, maxStateBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, IOError(name, err)
	}
	return text, nil
}

// write replaces a file of the state at once.
func (s State) write(name string, content []byte) error {
	name = filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return IOError(name, err)
	}
	if err := files.Replace(name, content, 0o600); err != nil {
		return IOError(name, err)
	}
	return nil
}

// WriteJSON replaces a file of the state by a value, on disk.
func (s State) WriteJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return NewError(Unexpected, "", nil, "%s cannot be written", name).Because(err)
	}
	if err := s.write(name, append(text, '\n')); err != nil {
		return err
	}
	s.syncFolder(filepath.Dir(name))
	return nil
}

func (s State) syncFolder(name string) {
	if root, err := openRoot(filepath.Join(s.dir, name)); err == nil {
		syncFolder(root, ".", nil)
		_ = root.Close()
	}
}

// pending returns the journal that a killed process left; nil if there is none.
func (s State) pending() (*journal, error) {
	name := filepath.Join(s.dir, "journal.json")
	text, _, err := files.ReadPath(name, maxStateBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil {
		return nil, NewError(Unexpected, "state_damaged", []string{"restore_state"},
			"the journal of an unfinished deployment cannot be read: %s", pathlessError(err)).With("path", name).Because(err)
	}
	return &j, nil
}

func (s State) endJournal() error { return s.removeFile("journal.json") }

// removeFile removes a file of the state; a missing one is not an error.
func (s State) removeFile(name string) error {
	path := filepath.Join(s.dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return IOError(path, err)
	}
	s.syncFolder(filepath.Dir(name))
	return nil
}

// snapshotFile returns the name of a snapshot's file.
func snapshotFile(id string) string { return filepath.Join("snapshots", id+".json") }

// lockTime is how long another process that deploys is waited for.
const lockTime = time.Minute

// lockState keeps other processes from changing anything until the returned function is called, or this process ends.
// With exclusive, it keeps them from looking, too. E_LOCKED if another takes longer than a minute.
func (s State) lockState(ctx context.Context, exclusive bool) (unlock func(), err error) {
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
	if err = files.Lock(ctx, f, exclusive); err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, ctx.Err()) {
		return nil, NewError(Locked, "locked", []string{"retry_command"},
			"another process has been deploying all the time that this one waited").Because(err)
	}
	return nil, IOError(name, err)
}

// TryLock keeps other processes from taking a lock of the state until unlock is called, or this process ends. ok is
// false if another has it.
func (s State) TryLock(name string) (unlock func(), ok bool, err error) {
	name = filepath.Join(s.dir, name)
	f, err := s.openLock(name, true)
	if err != nil {
		return nil, false, IOError(name, err)
	}
	taken, err := files.TryLock(f, true)
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
