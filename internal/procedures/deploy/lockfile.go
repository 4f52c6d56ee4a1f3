package deploy

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"
)

// lockName is the lock file in the configuration's repository.
const lockName = "agentpack.lock.json"

// lockFile pins modules of other repositories to commits.
type lockFile struct {
	Version int            `json:"version"`
	Modules []lockedModule `json:"modules"`
}

type lockedModule struct {
	ID       string     `json:"id"`
	Type     ModuleType `json:"type"`
	Resolved Source     `json:"resolved_source"`
	Version  string     `json:"resolved_version"`
	SHA256   string     `json:"sha256"`
}

// maxLockBytes bounds a lock file, which names each file of the modules.
const maxLockBytes = 64 << 20

// readLock reads the lock file; one that is not there locks nothing. E_LOCKFILE_INVALID and
// E_LOCKFILE_UNSUPPORTED_VERSION say what is wrong.
func readLock(repo string, own bool) (*lockFile, error) {
	name := filepath.Join(repo, lockName)
	text, err := readIn(repo, lockName, maxLockBytes, own)
	if errors.Is(err, fs.ErrNotExist) {
		return &lockFile{Version: 1}, nil
	}
	var l lockFile
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	next := []string{"regenerate_lockfile", "retry_command"}
	if err != nil {
		return nil, change.NewError(LockfileInvalid, "lockfile_invalid", next, "%s is broken: %s", name,
			reason(err)).With("path", name).Because(err)
	}
	if l.Version != 1 {
		return nil, change.NewError(LockfileUnsupported, "lockfile_unsupported_version", next,
			"%s has the version %d; 1 is supported", name, l.Version).
			With("path", name).With("version", l.Version).With("supported", []int{1})
	}
	for _, m := range l.Modules {
		if g := m.Resolved.Git; g != nil && !isCommit(g.Commit) {
			return nil, change.NewError(LockfileInvalid, "lockfile_invalid", next, "%s: the commit %q of the module %s is none",
				name, change.Short(g.Commit), m.ID).With("path", name).With("module_id", m.ID)
		}
	}
	return &l, nil
}

// isCommit reports whether a text is the full name of a commit. It is a part of paths and of git's arguments.
func isCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// commit returns the commit that a module is locked to; "" if it is not, or to another source.
func (l *lockFile) commit(m Module) string {
	for _, locked := range l.Modules {
		if g := locked.Resolved.Git; locked.ID == m.ID && g != nil && m.Source.Git != nil && g.URL == m.Source.Git.URL {
			return g.Commit
		}
	}
	return ""
}
