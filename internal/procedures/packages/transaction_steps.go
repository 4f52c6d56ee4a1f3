package packages

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

func packageFolder(folder string) string { return workspaceName + "/packages/" + folder }

// takePlace moves a package's old folder aside, and its new one to its place.
func (t *transaction) takePlace(root *os.Root, folder string) error {
	fresh := t.Stage + "/new/" + folder
	if !change.Has(root, fresh) {
		return nil // it was done
	}
	if err := t.aside(root, folder); err != nil {
		return err
	}
	return move(root, fresh, packageFolder(folder))
}

// aside moves a package's folder out of the way.
func (t *transaction) aside(root *os.Root, folder string) error {
	if !change.Has(root, packageFolder(folder)) {
		return nil
	}
	return move(root, packageFolder(folder), t.Stage+"/old/"+folder)
}

// putBack undoes takePlace and aside.
func (t *transaction) putBack(root *os.Root, folder string, isNew bool) error {
	fresh, old, here := t.Stage+"/new/"+folder, t.Stage+"/old/"+folder, packageFolder(folder)
	if isNew && !change.Has(root, fresh) && change.Has(root, here) {
		if err := move(root, here, fresh); err != nil {
			return err
		}
	}
	if !change.Has(root, old) {
		return nil
	}
	return move(root, old, here)
}

func move(root *os.Root, from, to string) error {
	if err := change.Move(root, from, to); err != nil {
		return unwritable(to, err)
	}
	return nil
}

// replaceLock writes the lock file; nil removes it.
func replaceLock(root *os.Root, text []byte) error {
	name := workspaceName + "/aam-lock.yaml"
	var err error
	if text == nil {
		err = change.Remove(root, name)
	} else {
		err = change.Replace(root, name, text, 0o644)
	}
	if err != nil {
		return unwritable(name, err)
	}
	return nil
}

// do makes an edit, unless it was made. note says that somebody has changed the file meanwhile, so that it was left as it is.
func (e textEdit) do(root *os.Root) (note []string, err error) {
	now, _, err := files.Read(root, e.Path, maxTextBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now = nil
	case err != nil:
		return nil, unwritable(e.Path, err)
	case now == nil:
		now = []byte{}
	}
	switch {
	case same(now, e.After):
		return nil, nil
	case !same(now, e.Before):
		return []string{e.Path + " was changed meanwhile; it was left as it is"}, nil
	case e.After == nil:
		err = change.Remove(root, e.Path)
	default:
		err = change.Replace(root, e.Path, e.After, 0o644)
	}
	if err != nil {
		return nil, unwritable(e.Path, err)
	}
	return nil, nil
}

// same compares contents; no file is not an empty one.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
