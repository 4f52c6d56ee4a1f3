// Package secretfile keeps secrets in files. Our own are made in the state folder, once, atomically, and readable only
// for us (Load). Those that the operator names are read again when they are replaced, so that a token can be changed
// while the process runs (File).
package secretfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Load returns the content of the file with the name in the folder. Where there is none it makes one (mode 0600), and
// the folder (mode 0700), with what fresh gives. Processes that race get the same content. A file that is there is
// never changed.
func Load(dir, name string, fresh func() (string, error)) (string, error) {
	path := filepath.Join(dir, name)
	text, _, err := files.ReadPath(path, MaxSize)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(text), err
	}
	if err := Create(dir, name, 0o600, fresh); err != nil {
		return "", err
	}
	text, _, err = files.ReadPath(path, MaxSize)
	return string(text), err
}

// Create makes a file with the mode, whole or not at all, and the folder (mode 0700) if there is none: it writes a new
// file under a private name and links it into place, which fails if another process was faster. Then the other
// process's content is kept, which is not an error.
func Create(dir, name string, mode fs.FileMode, fresh func() (string, error)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := fresh()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, name+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // a leftover does no harm
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
