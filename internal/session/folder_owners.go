package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/confine"
)

// Modes of what the agent's user may read, where that is another: by its group.
const (
	sharedFolder = 0o750
	sharedFile   = 0o640
)

// makeOurs makes a folder that is ours, and that the agent may look into.
func (f *folder) makeOurs(path string) error {
	return f.account.WithGroup(func() error {
		if err := os.Mkdir(path, 0o700); err != nil || f.account == nil {
			return err
		}
		return os.Chmod(path, sharedFolder) //nolint:gosec // see above; the mask of this process must not count
	})
}

// makeOwn makes the agent's own folders, and opens that of the handoff.
func (f *folder) makeOwn() error {
	return f.account.As(func() (err error) {
		for _, dir := range []string{f.work(), f.temp(), f.handoffDir(), f.home()} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
		}
		f.handoff, err = os.OpenRoot(f.handoffDir())
		return err
	})
}

// writeOurs writes a file that is ours, and that the agent may read.
func (f *folder) writeOurs(name string, data []byte) error {
	return f.account.WithGroup(func() error {
		if err := os.WriteFile(name, data, 0o600); err != nil || f.account == nil {
			return err
		}
		return os.Chmod(name, sharedFile) //nolint:gosec // see above
	})
}

// removeFolder removes a session's folder. What is the account's is removed with the account's rights, so that no link leads elsewhere.
func removeFolder(path string, account *confine.Account) error {
	f := folder{path: path, account: account}
	err := account.As(func() error { return errors.Join(empty(path), os.RemoveAll(path)) })
	return errors.Join(err, os.RemoveAll(f.private()))
}

// empty removes what is in a folder, also what its owner has taken the rights to.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err = os.Chmod(dir, 0o700); err == nil { //nolint:gosec // a folder
			entries, err = os.ReadDir(dir)
		}
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if os.RemoveAll(path) == nil {
			continue
		}
		_ = filepath.WalkDir(path, func(at string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(at, 0o700) //nolint:gosec // it is about to be removed
			}
			return nil
		})
		_ = os.Chmod(dir, 0o700) //nolint:gosec // a folder
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}
