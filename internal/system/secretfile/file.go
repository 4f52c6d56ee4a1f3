package secretfile

import (
	"os"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/system/files"
)

// MaxSize bounds what a file may hold, in bytes.
const MaxSize = 64 << 10

// Read returns what a file holds without the white space around it. It fails at once for a file that cannot be read,
// that is not a regular file or that is larger than MaxSize.
func Read(path string) (string, error) {
	text, _, err := read(path)
	return text, err
}

func read(path string) (string, os.FileInfo, error) {
	text, info, err := files.ReadPath(path, MaxSize)
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(string(text)), info, nil
}

// File is a secret in a file. It is safe for concurrent use.
type File struct {
	path    string
	learned func(value string)

	mu    sync.Mutex
	value string
	seen  os.FileInfo // of the file that value is from; nil before the first look
}

// New makes a File that held value when the configuration was read. learned, unless nil, is called with every later
// value of the file, before Value or Reread returns it: the redaction must know the new one, and keep the old.
func New(path, value string, learned func(value string)) *File {
	if learned == nil {
		learned = func(string) {}
	}
	return &File{path: path, value: value, learned: learned}
}

// Value returns what the file holds. The file is read again when its time, its size or the file itself is another than
// at the last look. While it is missing, empty or cannot be read, the last value stays: a file is often replaced in two
// steps.
func (f *File) Value() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread(false)
	return f.value
}

// Reread reads the file whether or not it seems to have changed, and returns what it holds, as Value does.
func (f *File) Reread() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread(true)
	return f.value
}

func (f *File) same(info os.FileInfo) bool {
	return f.seen != nil && os.SameFile(f.seen, info) && f.seen.ModTime().Equal(info.ModTime()) &&
		f.seen.Size() == info.Size()
}

// reread looks for a regular file: the opening of others, such as a pipe, could take for ever.
func (f *File) reread(always bool) {
	info, err := os.Stat(f.path)
	if err != nil || !info.Mode().IsRegular() || !always && f.same(info) {
		return
	}
	text, info, err := read(f.path)
	if err != nil || text == "" {
		return
	}
	f.seen = info
	if text != f.value {
		f.learned(text)
		f.value = text
	}
}
