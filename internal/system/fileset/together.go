package fileset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/claudeops/claudeops/internal/system/files"
)

// gathering puts the files of a deployment on disk together; see files.Together.
type gathering struct {
	mu sync.Mutex
	files.Together
	disk memoryOfDisk
}

// memoryOfDisk hears which files are in the system's memory alone, for tests that lose them; nil hears nothing.
type memoryOfDisk interface {
	wrote(f *os.File)
	flushed()
}

func (e *Engine) gather() *gathering { return &gathering{disk: e.memory} }

// sync puts a written file on disk, now or with flush. With a nil gathering that is now. It is safe for concurrent use;
// flush is called when no sync runs.
func (g *gathering) sync(f *os.File) error {
	if g == nil {
		return f.Sync()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	later, err := g.Sync(f)
	if later && g.disk != nil {
		g.disk.wrote(f)
	}
	return err
}

// flush puts on disk what sync has put off.
func (g *gathering) flush() error {
	err := g.Flush()
	if err == nil && g.disk != nil {
		g.disk.flushed()
	}
	return err
}

// keeper stores contents in the state. Each waits under another name until all are on disk, so that a name in objects
// stands for a content that a loss of power has not cut off. keep is safe for concurrent use.
type keeper struct {
	state    State
	gathered *gathering
	mu       sync.Mutex
	waiting  map[string]bool // hashes
}

func (e *Engine) keeper() *keeper {
	return &keeper{state: e.state, gathered: e.gather(), waiting: map[string]bool{}}
}

// waitingObject is the name prefix of contents that are not on disk yet.
const waitingObject = "new-"

// keep stores a content under its hash, once settle was called.
func (k *keeper) keep(c Content) error {
	hash := c.SHA256()
	if k.waits(hash) {
		return nil
	}
	if old, _, err := files.ReadPath(k.state.object(hash), maxStateBytes); err == nil && Hash(old) == hash {
		return nil
	}
	content, err := c.Bytes()
	if err != nil {
		return err
	}
	name := k.state.object(waitingObject + hash)
	first, err := k.take(hash, filepath.Dir(name))
	if first && err == nil {
		err = k.write(name, content)
	}
	if err != nil {
		return IOError(name, err)
	}
	return nil
}

func (k *keeper) waits(hash string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting[hash]
}

// take notes that a content waits; first says that the caller is to write it into dir.
func (k *keeper) take(hash, dir string) (first bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.waiting) == 0 {
		err = os.MkdirAll(dir, 0o700)
	}
	first = !k.waiting[hash]
	k.waiting[hash] = true
	return first, err
}

func (k *keeper) write(name string, content []byte) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // of a process that was killed
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = k.gathered.sync(f)
	}
	return errors.Join(err, f.Close())
}

// settle puts all contents on disk under their hashes.
func (k *keeper) settle() error {
	if err := k.gathered.flush(); err != nil {
		return IOError(k.state.object(""), err)
	}
	for hash := range k.waiting {
		if err := os.Rename(k.state.object(waitingObject+hash), k.state.object(hash)); err != nil {
			return IOError(k.state.object(hash), err)
		}
	}
	clear(k.waiting)
	k.state.syncFolder("objects")
	return nil
}
