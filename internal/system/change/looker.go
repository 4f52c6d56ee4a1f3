package change

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
)

// looker looks at many files, one after the other: the folder of the last one stays open, and the hash of a file that
// has not changed is remembered. It is for what changes nothing. Close it.
type looker struct {
	disk   disk
	hashes *Hashes
	asked  map[string]fileID // stat data of files read just now
	dir    string            // the folder that is open
	folder *os.Root          // nil if there is none at dir
}

func (l *looker) close() {
	if l.folder != nil {
		_ = l.folder.Close()
	}
	l.folder, l.dir = nil, ""
}

// look is disk.look.
func (l *looker) look(name string) (found, error) {
	if id, asked := l.asked[name]; asked && id == (fileID{}) {
		return found{}, nil
	} else if asked && id.plainSize() {
		if hash, known := l.hashes.with(name, id); known {
			return found{exists: true, mode: fs.FileMode(id.Mode).Perm(), hash: hash}, nil
		}
	}
	dir := filepath.Dir(name)
	if dir != l.dir {
		if err := l.open(dir); err != nil {
			return found{}, err
		}
	}
	if l.folder == nil {
		return found{}, nil
	}
	base := filepath.Base(name)
	info, err := l.folder.Lstat(base)
	switch {
	case absent(err):
		return found{}, nil
	case err != nil:
		return found{}, IOError(name, err)
	}
	if what := notPlain(info); what != "" {
		return found{exists: true, what: what}, nil
	}
	at := found{exists: true, mode: info.Mode().Perm()}
	if hash, known := l.hashes.of(name, info); known {
		at.hash = hash
		return at, nil
	}
	began := l.hashes.time()
	content, info, err := readPlain(l.folder, base)
	if err != nil {
		return found{}, IOError(name, err)
	}
	at.hash = Hash(content)
	l.hashes.note(name, info, began, at.hash)
	return at, nil
}

// open opens the folder of the next files. One that is not there, or is a file, holds nothing.
func (l *looker) open(dir string) error {
	l.close()
	root, rel, err := l.disk.within(dir)
	switch {
	case absent(err):
		l.dir = dir
		return nil
	case err != nil:
		return IOError(dir, err)
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(rel)
	if err == nil && info.IsDir() {
		l.folder, err = root.OpenRoot(rel)
	}
	if err != nil && !absent(err) {
		return IOError(dir, err)
	}
	l.dir = dir
	return nil
}

// readPlain reads a file of a folder, with the stat data from before the reading.
func readPlain(folder *os.Root, name string) ([]byte, fs.FileInfo, error) {
	return files.Read(folder, name, MaxFileBytes)
}

// time returns the time at which a reading begins.
func (h *Hashes) time() time.Time {
	if h == nil {
		return time.Time{}
	}
	return h.now()
}
