// This file keeps secrets in files. Our own are made in the state folder, once, atomically, and readable only for us
// (Load). Those that the operator names are read again when they are replaced, so that a token can be changed while
// the process runs (File).

package files

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// LoadSecret returns the content of the file with the name in the folder. Where there is none it makes one (mode 0600),
// and the folder (mode 0700), with what fresh gives. Processes that race get the same content. A file that is there is
// never changed.
func LoadSecret(dir, name string, fresh func() (string, error)) (string, error) {
	path := filepath.Join(dir, name)
	text, _, err := ReadPath(path, MaxSecretSize)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(text), err
	}
	if err := CreateSecret(dir, name, 0o600, fresh); err != nil {
		return "", err
	}
	text, _, err = ReadPath(path, MaxSecretSize)
	return string(text), err
}

// CreateSecret makes a file with the mode, whole or not at all, and the folder (mode 0700) if there is none: it writes
// a new file under a private name and links it into place, which fails if another process was faster. Then the other
// process's content is kept, which is not an error.
func CreateSecret(dir, name string, mode fs.FileMode, fresh func() (string, error)) error {
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

// MaxSecretSize bounds what a file may hold, in bytes.
const MaxSecretSize = 64 << 10

// ReadSecret returns what a file holds without the white space around it. It fails at once for a file that cannot be
// read, that is not a regular file or that is larger than MaxSecretSize.
func ReadSecret(path string) (string, error) {
	text, _, err := readTrimmed(path)
	return text, err
}

func readTrimmed(path string) (string, os.FileInfo, error) {
	text, info, err := ReadPath(path, MaxSecretSize)
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(string(text)), info, nil
}

// SecretFile is a secret in a file. It is safe for concurrent use.
type SecretFile struct {
	path    string
	learned func(value string)

	mu    sync.Mutex
	value string
	seen  os.FileInfo // of the file that value is from; nil before the first look
}

// NewSecretFile makes a File that held value when the configuration was read. learned, unless nil, is called with every
// later value of the file, before Value or Reread returns it: the redaction must know the new one, and keep the old.
func NewSecretFile(path, value string, learned func(value string)) *SecretFile {
	if learned == nil {
		learned = func(string) {}
	}
	return &SecretFile{path: path, value: value, learned: learned}
}

// Value returns what the file holds. The file is read again when its time, its size or the file itself is another than
// at the last look. While it is missing, empty or cannot be read, the last value stays: a file is often replaced in two
// steps.
func (f *SecretFile) Value() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread(false)
	return f.value
}

// Reread reads the file whether or not it seems to have changed, and returns what it holds, as Value does.
func (f *SecretFile) Reread() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread(true)
	return f.value
}

func (f *SecretFile) isUnchanged(info os.FileInfo) bool {
	return f.seen != nil && os.SameFile(f.seen, info) && f.seen.ModTime().Equal(info.ModTime()) &&
		f.seen.Size() == info.Size()
}

// reread looks for a regular file: the opening of others, such as a pipe, could take for ever.
func (f *SecretFile) reread(always bool) {
	info, err := os.Stat(f.path)
	if err != nil || !info.Mode().IsRegular() || !always && f.isUnchanged(info) {
		return
	}
	text, info, err := readTrimmed(f.path)
	if err != nil || text == "" {
		return
	}
	f.seen = info
	if text != f.value {
		f.learned(text)
		f.value = text
	}
}

// SecretsInAddresses returns the secrets of addresses such as https://USER:TOKEN@HOST, one on a line, as git's
// credential store has them: the passwords, plain and as encoded in the address. A user name without a password is a
// token and counts too. Lines that are not addresses have none.
func SecretsInAddresses(text string) (secrets []string) {
	for line := range strings.Lines(text) {
		u, err := url.Parse(strings.TrimSpace(line))
		if err != nil || u.User == nil {
			continue
		}
		secret, has := u.User.Password()
		_, written, _ := strings.Cut(u.User.String(), ":")
		if !has || secret == "" {
			secret, written = u.User.Username(), ""
		}
		for _, s := range []string{secret, written} {
			if s != "" && !slices.Contains(secrets, s) {
				secrets = append(secrets, s)
			}
		}
	}
	return secrets
}
