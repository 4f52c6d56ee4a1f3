// Package secretfile keeps secrets in files. Those of our own are made in the state folder, once, whole, and for nobody else
// to read (Load). Those that the operator names are read again when they are replaced, so that a token can be changed while
// the process runs (File).
package secretfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Load returns the content of the file with the name in the folder. Where there is none it makes one (mode 0600), and the
// folder (mode 0700), with what fresh gives. Processes that race get the same content. A file that is there is never changed.
func Load(dir, name string, fresh func() (string, error)) (string, error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path) // #nosec G304: a fixed name in the state folder
	if !errors.Is(err, fs.ErrNotExist) {
		return string(text), err
	}
	if err := create(dir, name, fresh); err != nil {
		return "", err
	}
	text, err = os.ReadFile(path) // #nosec G304: as above
	return string(text), err
}

// create writes a new file under a private name and links it into place, which fails if another process was faster: then
// that one's content holds.
func create(dir, name string, fresh func() (string, error)) error {
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
	defer func() { _ = os.Remove(f.Name()) }() // a leftover harms nobody
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
