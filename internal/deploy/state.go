package deploy

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/filelock"
)

// State is the folder where deployments are remembered: state/ of AGENTPACK_HOME. Contents are kept once, under their hash, in objects;
// a snapshot names the files of a moment; a journal stands there while files are being changed.
type State struct {
	dir string
	now func() time.Time
}

// NewState makes a State. It touches no disk.
func NewState(home string, now func() time.Time) State {
	return State{dir: filepath.Join(home, "state"), now: now}
}

// FileState is a file at one moment.
type FileState struct {
	Target  TargetName `json:"target"`
	Path    string     `json:"path"`
	SHA256  string     `json:"sha256"`
	Mode    uint32     `json:"mode"`
	Modules []string   `json:"module_ids"`
	Root    string     `json:"root"`
}

// Snapshot is what was deployed at one moment, and what stood there before.
type Snapshot struct {
	SchemaVersion int         `json:"schema_version"`
	ID            string      `json:"id"`
	Kind          string      `json:"kind"` // deploy or rollback
	CreatedAt     time.Time   `json:"created_at"`
	Targets       []string    `json:"targets"`
	RolledBackTo  string      `json:"rolled_back_to,omitempty"`
	Roots         []RootDir   `json:"roots"`
	Managed       []FileState `json:"managed_files"`
	Steps         []Step      `json:"changes"`
	Previous      string      `json:"previous,omitempty"` // id of the snapshot before
}

// Step is one change of a file.
type Step struct {
	Target TargetName `json:"target"`
	Path   string     `json:"path"`
	Before string     `json:"before_sha256"` // "" for no file
	After  string     `json:"after_sha256"`  // "" for no file
	Mode   uint32     `json:"mode"`
	// BeforeMode is that of the file that was there.
	BeforeMode uint32 `json:"before_mode,omitempty"`
	// Adopted says that the file that was there was nobody's.
	Adopted bool `json:"adopted,omitempty"`
}

// journal is what is being done: enough to finish it.
type journal struct {
	Snapshot  Snapshot          `json:"snapshot"`
	Manifests map[string]string `json:"manifests"` // contents by path; "" removes
}

// newID is a snapshot's id: nanoseconds since 1970, greater than those that are there.
func (s State) newID(known []string) string {
	id := s.now().UnixNano()
	for _, other := range known {
		if n, err := strconv.ParseInt(other, 10, 64); err == nil && n >= id {
			id = n + 1
		}
	}
	return strconv.FormatInt(id, 10)
}

// keep stores a content under its hash.
func (s State) keep(content []byte) error {
	name := filepath.Join(s.dir, "objects", hashOf(content))
	if old, err := os.ReadFile(name); err == nil && hashOf(old) == hashOf(content) {
		return nil
	}
	return s.write(filepath.Join("objects", hashOf(content)), content)
}

// kept is a content by its hash.
func (s State) kept(hash string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(s.dir, "objects", hash))
	if err != nil {
		return nil, ioError(filepath.Join(s.dir, "objects", hash), err)
	}
	if hashOf(content) != hash {
		return nil, newError(Unexpected, "state_damaged", []string{"restore_state"}, "the kept content %s was changed", hash)
	}
	return content, nil
}

// write replaces a file of the state at once.
func (s State) write(name string, content []byte) error {
	name = filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return ioError(name, err)
	}
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return ioError(name, err)
	}
	defer func() { _ = root.Close() }()
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return ioError(name, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return ioError(name, err)
	}
	syncFolder(root, ".")
	return nil
}

func (s State) writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return newError(Unexpected, "", nil, "%s cannot be written", name).because(err)
	}
	return s.write(name, append(text, '\n'))
}

// IDs lists the snapshots, oldest first.
func (s State) IDs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "snapshots"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, ioError(filepath.Join(s.dir, "snapshots"), err)
	}
	var out []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && validID(id) {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return out, nil
}

func validID(id string) bool { return regexp.MustCompile(`\A[0-9]{1,30}\z`).MatchString(id) }

// Snapshot reads a snapshot. E_SNAPSHOT_NOT_FOUND for an id that is none.
func (s State) Snapshot(id string) (*Snapshot, error) {
	if !validID(id) {
		return nil, noSnapshot(id)
	}
	name := filepath.Join(s.dir, "snapshots", id+".json")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noSnapshot(id)
	}
	var snap Snapshot
	if err == nil {
		err = json.Unmarshal(text, &snap)
	}
	if err != nil {
		return nil, newError(Unexpected, "state_damaged", []string{"restore_state"}, "the snapshot %s cannot be read: %s", id, reason(err)).with("path", name).because(err)
	}
	return &snap, nil
}

func noSnapshot(id string) error {
	return newError(SnapshotNotFound, "snapshot_not_found", []string{"list_snapshots", "retry_command"}, "there is no snapshot %q", id).with("snapshot_id", id)
}

// Last is the newest snapshot; nil if there is none. One that cannot be read is passed over.
func (s State) Last() (*Snapshot, error) {
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		if snap, err := s.Snapshot(id); err == nil {
			return snap, nil
		}
	}
	return nil, nil
}

// lockTime is how long another process that deploys is waited for.
const lockTime = time.Minute

// lock keeps other processes from deploying until the returned function is called, or this process ends. E_LOCKED if another takes
// longer than a minute.
func (s State) lock() (func(), error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, ioError(s.dir, err)
	}
	name := filepath.Join(s.dir, "lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, ioError(name, err)
	}
	for end := time.Now().Add(lockTime); ; time.Sleep(10 * time.Millisecond) {
		taken, err := filelock.Try(f, true)
		switch {
		case taken:
			return func() { _ = f.Close() }, nil
		case err != nil:
			_ = f.Close()
			return nil, ioError(name, err)
		case time.Now().After(end):
			_ = f.Close()
			return nil, newError(Locked, "locked", []string{"retry_command"}, "another process has been deploying for a minute")
		}
	}
}

// pending is the journal that a killed process left; nil if there is none.
func (s State) pending() (*journal, error) {
	name := filepath.Join(s.dir, "journal.json")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil {
		return nil, newError(Unexpected, "state_damaged", []string{"restore_state"}, "the journal of an unfinished deployment cannot be read: %s", reason(err)).with("path", name).because(err)
	}
	return &j, nil
}

func (s State) endJournal() error {
	name := filepath.Join(s.dir, "journal.json")
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioError(name, err)
	}
	if root, err := os.OpenRoot(s.dir); err == nil {
		syncFolder(root, ".")
		_ = root.Close()
	}
	return nil
}
