// This file keeps secret keys in the state folder: that with which Claude Ops signs the marks in its pull requests,
// and that which seals what providers of identities have given.

package config

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
)

// KeySize is the length of the key in bytes: that of the hash it is used with.
const KeySize = 32

// MarkKeyName is the key's file in the state folder.
const MarkKeyName = "mark.key"

// GrantsKeyName is the file of the key that encrypts the grants for asking providers of identities about people. It is
// in no backup, so a backup alone does not allow asking them.
const GrantsKeyName = "grants.key"

// LoadMarkKey returns the key of the marks in the state folder, and makes folder and key (modes 0700 and 0600) at first
// need. Processes that race get the same key. A file that holds something else is an error, fault.Misconfigured, and is
// left as it is.
func LoadMarkKey(stateDir string) ([]byte, error) { return LoadKeyFile(stateDir, MarkKeyName) }

// LoadKeyFile is Load for the key in a file of another name.
func LoadKeyFile(stateDir, name string) ([]byte, error) {
	path := filepath.Join(stateDir, name)
	text, err := files.LoadSecret(stateDir, name, newKey)
	if err != nil {
		return nil, explainKeyFile(path, err)
	}
	key, err := ParseKey(text)
	return key, explainKeyFile(path, err)
}

// FindMarkKey returns the content of the key's file, nil if none was made yet. It makes none.
func FindMarkKey(stateDir string) ([]byte, error) {
	path := filepath.Join(stateDir, MarkKeyName)
	text, _, err := files.ReadPath(path, files.MaxSecretSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		_, err = ParseKey(string(text))
	}
	if err != nil {
		return nil, explainKeyFile(path, err)
	}
	return text, nil
}

// ParseKey reads a key that configuration gives: 64 hexadecimal digits.
func ParseKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("it is not %d hexadecimal digits", 2*KeySize)
	}
	return key, nil
}

// newKey makes a key as its file has it.
func newKey() (string, error) {
	key := make([]byte, KeySize)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	return hex.EncodeToString(key) + "\n", nil
}

func explainKeyFile(path string, err error) error {
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
