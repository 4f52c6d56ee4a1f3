package session

import (
	"errors"
	"io/fs"

	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Modes of what the agent's user may read, where that is another: by its group.
const (
	sharedFolder = 0o750
	sharedFile   = 0o640
)

// mode returns the mode of our files: shared where the agent's user is another.
func (f *folder) mode(private, shared fs.FileMode) fs.FileMode {
	if f.account != nil {
		return shared
	}
	return private
}

// makeOurs makes a folder that is ours, and that the agent may look into.
func (f *folder) makeOurs(path string) error {
	return f.account.WithGroup(func() error { return files.Mkdir(path, f.mode(0o700, sharedFolder)) })
}

// makeOwn makes the agent's own folders, and opens that of the handoff.
func (f *folder) makeOwn() error {
	return f.account.As(func() (err error) {
		for _, dir := range []string{f.work(), f.temp(), f.handoffDir(), f.home()} {
			if err := files.Mkdir(dir, 0o700); err != nil {
				return err
			}
		}
		f.handoff, err = files.OpenDir(f.handoffDir())
		return err
	})
}

// writeOurs writes a file that is ours, and that the agent may read.
func (f *folder) writeOurs(name string, data []byte) error {
	return f.account.WithGroup(func() error { return files.Create(name, data, f.mode(0o600, sharedFile)) })
}

// removeFolder removes a session's folder. What is the account's is removed with the account's rights, so that no link
// leads elsewhere.
func removeFolder(path string, account *confine.Account) error {
	f := folder{path: path, account: account}
	err := account.As(func() error { return confine.RemoveAll(path) })
	return errors.Join(err, files.Temporary{Path: f.private()}.Remove())
}
