package deploy

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// LockName is the lock file in the configuration's repository.
const LockName = "agentpack.lock.json"

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

// readLock reads the lock file; one that is not there locks nothing. E_LOCKFILE_INVALID and E_LOCKFILE_UNSUPPORTED_VERSION say what is wrong.
func readLock(repo string) (*lockFile, error) {
	name := filepath.Join(repo, LockName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &lockFile{Version: 1}, nil
	}
	var l lockFile
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	next := []string{"regenerate_lockfile", "retry_command"}
	if err != nil {
		return nil, newError(LockfileInvalid, "lockfile_invalid", next, "%s is broken: %s", name, reason(err)).with("path", name).because(err)
	}
	if l.Version != 1 {
		return nil, newError(LockfileUnsupported, "lockfile_unsupported_version", next, "%s has the version %d; 1 is supported", name, l.Version).
			with("path", name).with("version", l.Version).with("supported", []int{1})
	}
	return &l, nil
}

// commit is the commit that a module is locked to; "" if it is not, or to another source.
func (l *lockFile) commit(m Module) string {
	for _, locked := range l.Modules {
		if g := locked.Resolved.Git; locked.ID == m.ID && g != nil && m.Source.Git != nil && g.URL == m.Source.Git.URL {
			return g.Commit
		}
	}
	return ""
}
