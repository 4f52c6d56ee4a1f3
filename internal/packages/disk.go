package packages

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// reason is an error without the name of its file.
func reason(err error) string {
	var of *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &of):
		return of.Err.Error()
	case errors.As(err, &link):
		return link.Err.Error()
	}
	return err.Error()
}

// readFile reads a file below a root, at most so many bytes.
func readFile(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.New("it is no regular file"))
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// readBelow reads a file by its absolute path, and follows no link out of dir; nil without an error if it does not exist.
func readBelow(dir, name string, most int64) ([]byte, error) {
	root, rel, err := openBelow(dir, name)
	if err == nil {
		defer func() { _ = root.Close() }()
		var content []byte
		content, err = readFile(root, rel, most)
		if err == nil {
			return content, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}

func openBelow(dir, name string) (root *os.Root, rel string, err error) {
	if rel, err = filepath.Rel(dir, name); err != nil {
		return nil, "", err
	}
	root, err = os.OpenRoot(dir)
	return root, rel, err
}

// writeBelow replaces a file at once, on disk before it has its name, and makes its folders. It follows no link out of dir.
func writeBelow(dir, name string, content []byte) error {
	root, rel, err := openBelow(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return writeIn(root, filepath.ToSlash(rel), content, 0o644)
}

// writeIn is writeBelow for a root that is open.
func writeIn(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	folder := path.Dir(name)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	fresh := path.Join(folder, ".new-"+rand.Text())
	file, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = root.Rename(fresh, name)
	}
	if err != nil {
		_ = root.Remove(fresh)
		return err
	}
	syncFolder(root, folder)
	return nil
}

// syncFolder puts a folder's entries on disk. Where folders cannot be synced, a file is still whole or as before.
func syncFolder(root *os.Root, name string) {
	if dir, err := root.Open(name); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// marshal is a value as YAML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), encoder.Close()
}

// unmarshalLenient reads YAML whose other fields do not matter.
func unmarshalLenient(text []byte, into any) error { return yaml.Unmarshal(text, into) }
