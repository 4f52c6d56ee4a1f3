package packages

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// reason returns an error without the name of its file.
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

// readBelow reads a file by its absolute path, and follows no link out of dir; nil without an error if it does not
// exist.
func readBelow(dir, name string, most int64) ([]byte, error) {
	root, rel, err := openBelow(dir, name)
	if err == nil {
		defer func() { _ = root.Close() }()
		var content []byte
		content, _, err = root.Read(rel, most)
		if err == nil {
			return content, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}

func openBelow(dir, name string) (root *files.Writing, rel string, err error) {
	if rel, err = filepath.Rel(dir, name); err != nil {
		return nil, "", err
	}
	root, err = files.OpenWriting(dir)
	return root, filepath.ToSlash(rel), err
}

// openFolder opens a folder by its absolute path, and with within follows no link out of that.
func openFolder(name, within string) (*files.Writing, error) {
	if within == "" {
		return files.OpenWriting(name)
	}
	return openWithin(within, name)
}

// openWithin opens a folder by its absolute path, and follows no link out of dir.
func openWithin(dir, name string) (*files.Writing, error) {
	if !change.Below(dir, name) { // it is written under another name of dir
		dir, name = real(dir), real(name)
	}
	root, rel, err := openBelow(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.Folder(rel)
}

// writeBelow replaces a file at once, on disk before it has its name, and makes its folders. It follows no link out of
// dir.
func writeBelow(dir, name string, content []byte) error {
	root, rel, err := openBelow(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return root.Put(rel, content, 0o644)
}

// marshal returns a value as YAML.
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
