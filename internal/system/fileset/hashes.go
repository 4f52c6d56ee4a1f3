package fileset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Hashes remembers the hash of each file that was read, with the file's stat data at that time, as git's index does: a
// plan with nothing changed asks the system about each file and reads none. It is a cache: one that is damaged or
// missing only costs time, and nothing that is about to be written relies on it. A nil one remembers nothing.
type Hashes struct {
	file string // where it is kept between processes; "" for nowhere
	now  func() time.Time

	mu    sync.Mutex
	read  bool
	known map[string]hashed
	fresh int // entries that the file does not have
}

// fileID holds the system's stat data of a file. If two are equal, the file was not written in between; see
// Hashes.note.
type fileID struct {
	Size, Changed, Status int64 // Changed and Status: when its content and its inode were changed, in nanoseconds
	Inode, Device         uint64
	Mode                  uint32
}

type hashed struct {
	id  fileID
	sum [sha256.Size]byte
}

// Bounds of what is remembered.
const (
	maxHashes = 200_000
	// leastFresh is the number of new entries from which the file is written again.
	leastFresh = 256
	// settled is the minimum age of a file's last change for its hash to be remembered: a file system may give a change
	// just after the reading the same time. FAT has the coarsest clock, of two seconds.
	settled = 2 * time.Second
)

// NewHashes remembers hashes in a file; "" for nowhere.
func NewHashes(file string, now func() time.Time) *Hashes { return &Hashes{file: file, now: now} }

// lookup returns the hash of a file, if it is known.
func (h *Hashes) lookup(name string, info fs.FileInfo) (hash string, ok bool) {
	if h == nil {
		return "", false
	}
	id, ok := identify(info)
	if !ok {
		return "", false
	}
	return h.knownHash(name, id)
}

// knownHash is of for a file whose stat data are known.
func (h *Hashes) knownHash(name string, id fileID) (hash string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.load()
	e, ok := h.known[name]
	if !ok || e.id != id {
		return "", false
	}
	return hex.EncodeToString(e.sum[:]), true
}

// store remembers the hash of a file that was read after began; info is from before the reading.
func (h *Hashes) store(name string, info fs.FileInfo, began time.Time, hash string) (noted bool) {
	if h == nil {
		return false
	}
	id, ok := identify(info)
	sum, err := hex.DecodeString(hash)
	if newest := max(id.Changed, id.Status); !ok || err != nil || len(sum) != sha256.Size ||
		newest > began.Add(-settled).UnixNano() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.load()
	if len(h.known) >= maxHashes {
		clear(h.known)
	}
	h.known[name] = hashed{id, [sha256.Size]byte(sum)}
	h.fresh++
	return true
}

// The file begins with a mark and the SHA-256 of what follows: for each entry the length of its name, the name, the
// rest of it.
func hashesMark() []byte { return []byte("claudeops hashes 1\n") }

func (h *Hashes) load() {
	if h.read {
		return
	}
	h.read, h.known = true, map[string]hashed{}
	text, _, err := files.ReadPath(h.file, maxCacheBytes)
	body, ok := bytes.CutPrefix(text, hashesMark())
	if err != nil || !ok || len(body) < sha256.Size {
		return
	}
	want, body := [sha256.Size]byte(body), body[sha256.Size:]
	if sha256.Sum256(body) != want {
		return
	}
	for rest := string(body); len(rest) >= 2 && len(h.known) < maxHashes; {
		length := int(rest[0]) | int(rest[1])<<8
		if rest = rest[2:]; len(rest) < length+entryBytes {
			return
		}
		var e hashed
		e.id.unpack([]byte(rest[length : length+idBytes]))
		copy(e.sum[:], rest[length+idBytes:length+entryBytes])
		h.known[rest[:length]] = e
		rest = rest[length+entryBytes:]
	}
}

// Sizes of a fileID, and of an entry without its name.
const (
	idBytes    = 5*8 + 4
	entryBytes = idBytes + sha256.Size
)

func (id *fileID) unpack(b []byte) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	id.Size, id.Changed, id.Status = int64(word(0)), int64(word(1)), int64(word(2)) //nolint:gosec // as encode wrote them
	id.Inode, id.Device, id.Mode = word(3), word(4), binary.LittleEndian.Uint32(b[40:])
}

func (id fileID) encode(b []byte) []byte {
	for _, n := range []uint64{uint64(id.Size), uint64(id.Changed), uint64(id.Status), id.Inode, id.Device} { //nolint:gosec // and back
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return binary.LittleEndian.AppendUint32(b, id.Mode)
}

// saveHashes writes the file, if that is worth it. One that cannot be written is left.
func (h *Hashes) saveHashes() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fresh < leastFresh || h.file == "" {
		return
	}
	h.fresh = 0
	var body bytes.Buffer
	entry := make([]byte, 0, entryBytes)
	for name, e := range h.known {
		if len(name) > 1<<16-1 {
			continue
		}
		_ = binary.Write(&body, binary.LittleEndian, uint16(len(name))) //nolint:gosec // bounded above
		body.WriteString(name)
		entry = e.id.encode(entry[:0])
		body.Write(append(entry, e.sum[:]...))
	}
	sum := sha256.Sum256(body.Bytes())
	replaceCache(h.file, hashesMark(), sum[:], body.Bytes())
}

// looker looks at many files, one after the other: the folder of the last one stays open, and the hash of a file that
// has not changed is remembered. It is for what changes nothing. Close it.
type looker struct {
	ctx       context.Context // whose end is the end of the looking
	disk      disk
	hashes    *Hashes
	statCache map[string]fileID // stat data of files read just now
	dir       string            // the folder that is open
	folder    *os.Root          // nil if there is none at dir
}

func (l *looker) close() {
	if l.folder != nil {
		_ = l.folder.Close()
	}
	l.folder, l.dir = nil, ""
}

// lstat is disk.look.
func (l *looker) lstat(name string) (found, error) {
	if err := l.ctx.Err(); err != nil {
		return found{}, cutOff(err)
	}
	if id, asked := l.statCache[name]; asked && id == (fileID{}) {
		return found{}, nil
	} else if asked && id.plainSize() {
		if hash, known := l.hashes.knownHash(name, id); known {
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
	if hash, known := l.hashes.lookup(name, info); known {
		at.hash = hash
		return at, nil
	}
	began := l.hashes.time()
	content, info, err := readPlain(l.folder, base)
	if err != nil {
		return found{}, IOError(name, err)
	}
	at.hash = Hash(content)
	l.hashes.store(name, info, began, at.hash)
	return at, nil
}

// open opens the folder of the next files. One that is not there, or is a file, holds nothing.
func (l *looker) open(dir string) error {
	l.close()
	root, rel, err := l.disk.withinFolder(dir)
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
