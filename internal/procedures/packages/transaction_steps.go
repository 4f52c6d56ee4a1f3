package packages

import (
	"bytes"
	"errors"
	"io/fs"

	"github.com/claudeops/claudeops/internal/system/files"
)

func packageFolder(folder string) string { return workspaceName + "/packages/" + folder }

// takePlace moves a package's old folder aside, and its new one to its place.
func (t *transaction) takePlace(root *files.Writing, folder string) error {
	fresh := t.Stage + "/new/" + folder
	if !root.Has(fresh) {
		return nil // it was done
	}
	if err := t.aside(root, folder); err != nil {
		return err
	}
	return move(root, fresh, packageFolder(folder))
}

// aside moves a package's folder out of the way.
func (t *transaction) aside(root *files.Writing, folder string) error {
	if !root.Has(packageFolder(folder)) {
		return nil
	}
	return move(root, packageFolder(folder), t.Stage+"/old/"+folder)
}

// putBack undoes takePlace and aside.
func (t *transaction) putBack(root *files.Writing, folder string, isNew bool) error {
	fresh, old, here := t.Stage+"/new/"+folder, t.Stage+"/old/"+folder, packageFolder(folder)
	if isNew && !root.Has(fresh) && root.Has(here) {
		if err := move(root, here, fresh); err != nil {
			return err
		}
	}
	if !root.Has(old) {
		return nil
	}
	return move(root, old, here)
}

func move(root *files.Writing, from, to string) error {
	if err := root.Move(from, to); err != nil {
		return unwritable(to, err)
	}
	return nil
}

// replaceLock writes the lock file; nil removes it.
func replaceLock(root *files.Writing, text []byte) error {
	name := workspaceName + "/aam-lock.yaml"
	var err error
	if text == nil {
		err = root.Remove(name)
	} else {
		err = root.Put(name, text, 0o644)
	}
	if err != nil {
		return unwritable(name, err)
	}
	return nil
}

// do makes an edit, unless it was made. note says that somebody has changed the file meanwhile, so that it was left as
// it is.
func (e textEdit) do(root *files.Writing) (note []string, err error) {
	now, _, err := root.Read(e.Path, maxTextBytes)
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
		err = root.Remove(e.Path)
	default:
		err = root.Put(e.Path, e.After, 0o644)
	}
	if err != nil {
		return nil, unwritable(e.Path, err)
	}
	return nil, nil
}

// same compares contents; no file is not an empty one.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
