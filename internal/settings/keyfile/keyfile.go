// Package keyfile keeps secret keys in the state folder: that with which Claude Ops signs the marks in its pull
// requests, and that which seals what providers of identities have given.
package keyfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// Size is the length of the key in bytes: that of the hash it is used with.
const Size = 32

// Name is the key's file in the state folder.
const Name = "mark.key"

// Grants is the file of the key that encrypts the grants for asking providers of identities about people. It is in no
// backup, so a backup alone does not allow asking them.
const Grants = "grants.key"

// Load returns the key of the marks in the state folder, and makes folder and key (modes 0700 and 0600) at first need.
// Processes that race get the same key. A file that holds something else is an error, fault.Misconfigured, and is left
// as it is.
func Load(stateDir string) ([]byte, error) { return LoadFile(stateDir, Name) }

// LoadFile is Load for the key in a file of another name.
func LoadFile(stateDir, name string) ([]byte, error) {
	path := filepath.Join(stateDir, name)
	text, err := secretfile.Load(stateDir, name, newKey)
	if err != nil {
		return nil, explain(path, err)
	}
	key, err := Parse(text)
	return key, explain(path, err)
}

// Find returns the content of the key's file, nil if none was made yet. It makes none.
func Find(stateDir string) ([]byte, error) {
	path := filepath.Join(stateDir, Name)
	text, _, err := files.ReadPath(path, secretfile.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		_, err = Parse(string(text))
	}
	if err != nil {
		return nil, explain(path, err)
	}
	return text, nil
}

// Parse reads a key that configuration gives: 64 hexadecimal digits.
func Parse(text string) ([]byte, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != Size {
		return nil, fmt.Errorf("it is not %d hexadecimal digits", 2*Size)
	}
	return key, nil
}

// newKey makes a key as its file has it.
func newKey() (string, error) {
	key := make([]byte, Size)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	return hex.EncodeToString(key) + "\n", nil
}

func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	var pathErr *fs.PathError
	reason := err
	if errors.As(err, &pathErr) {
		reason = pathErr.Err
	}
	return fault.Wrap(err, fault.Misconfigured,
		"the key file %s cannot be used (%s); correct its permissions, or move it away to have a new one made", path, reason)
}
