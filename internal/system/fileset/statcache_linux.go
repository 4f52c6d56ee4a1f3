package fileset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// handle is a folder that is open.
type handle int

// openBase opens a folder by its path.
func openBase(dir string) (handle, bool) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return handle(fd), err == nil
}

func (h handle) close() { _ = unix.Close(int(h)) }

// below opens what is at a path below a folder. No link leads out of the folder, as with os.Root. Older systems than
// Linux 5.6 cannot.
func (h handle) below(rel string, flags uint64) (handle, error) {
	fd, err := unix.Openat2(int(h), rel, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
	return handle(fd), err
}

func nothingThere(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// id returns the stat data of a file in a folder; a link is not followed. The result is zero for a missing file.
func (h handle) id(name string) (id fileID, err error) {
	var s unix.Stat_t
	err = unix.Fstatat(int(h), name, &s, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return id, nil
	}
	return identityOf(&s), err
}

// leadsTo returns the stat data of the target of a link.
func (h handle) leadsTo(rel string) (id fileID, err error) {
	at, err := h.below(rel, unix.O_PATH)
	if err != nil {
		return id, err
	}
	defer at.close()
	var s unix.Stat_t
	err = unix.Fstat(int(at), &s)
	return identityOf(&s), err
}

func identityOf(s *unix.Stat_t) fileID {
	return fileID{
		Size: s.Size, Changed: s.Mtim.Nano(), Status: s.Ctim.Nano(), Inode: s.Ino, Device: uint64(s.Dev), Mode: s.Mode, //nolint:unconvert // on some architectures
	}
}

func fileType(id fileID) uint32 { return id.Mode & unix.S_IFMT }

// readDirents puts the entries of a folder into a buffer, as the system has them: inode, kind and name of each.
func (h handle) readDirents(buffer []byte) ([]byte, error) {
	buffer = buffer[:0]
	for {
		if cap(buffer)-len(buffer) < 8<<10 {
			buffer = append(make([]byte, 0, 2*cap(buffer)+8<<10), buffer...)
		}
		n, err := unix.Getdents(int(h), buffer[len(buffer):cap(buffer)])
		if n <= 0 || err != nil {
			return buffer, err
		}
		clean(buffer[len(buffer) : len(buffer)+n])
		buffer = buffer[:len(buffer)+n]
	}
}

// clean clears the meaningless parts of entries: the position of the next entry in the folder, and uninitialised bytes
// after a name. An entry is a struct linux_dirent64: inode (8 bytes), offset (8), length of the entry (2), kind (1),
// name and a zero.
func clean(entries []byte) {
	const offset, length, name = 8, 16, 19
	for len(entries) > name {
		size := min(int(binary.NativeEndian.Uint16(entries[length:])), len(entries))
		if size <= name {
			return
		}
		clear(entries[offset:length])
		if end := bytes.IndexByte(entries[name:size], 0); end >= 0 {
			clear(entries[name+end : size])
		}
		entries = entries[size:]
	}
}

// statter records a tree.
type statter struct {
	at      handle // base
	base    string
	folders []StatFolder
	buffer  []byte
}

// tree records what is at a path; false if that is not possible.
func (w *statter) tree(rel string, depth int) bool {
	if depth > maxTreeDepth {
		return false
	}
	dir, err := w.at.below(rel, unix.O_RDONLY|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOENT):
		w.folders = append(w.folders, StatFolder{base: w.base, rel: rel, absent: true})
		return true
	case errors.Is(err, unix.ENOTDIR):
		folder, ok := w.at.statFiles(w.base, path.Dir(rel), []string{path.Base(rel)})
		w.folders = append(w.folders, folder)
		return ok
	case err != nil:
		return false
	}
	defer dir.close()
	f := StatFolder{base: w.base, rel: rel}
	if w.buffer, err = dir.readDirents(w.buffer); err != nil {
		return false
	}
	f.entries = bytes.Clone(w.buffer)
	inner, ok := w.entries(dir, &f)
	if !ok {
		return false
	}
	w.folders = append(w.folders, f)
	for _, name := range inner {
		if !w.tree(name, depth+1) {
			return false
		}
	}
	return true
}

// entries records the files of a folder that is open. inner are the folders in it.
func (w *statter) entries(dir handle, f *StatFolder) (inner []string, ok bool) {
	_, _, names := unix.ParseDirent(f.entries, -1, nil)
	for _, name := range names {
		if name == ".git" {
			continue
		}
		id, err := dir.id(name)
		if err != nil {
			return nil, false
		}
		switch fileType(id) {
		case unix.S_IFDIR:
			inner = append(inner, path.Join(f.rel, name))
		case unix.S_IFREG:
			f.files = append(f.files, statFile{name: name, id: id})
		case unix.S_IFLNK:
			to, err := w.at.leadsTo(path.Join(f.rel, name))
			if err != nil || fileType(to) != unix.S_IFREG {
				return nil, false
			}
			f.files = append(f.files, statFile{name: name, id: to, link: true})
		default:
			return nil, false
		}
	}
	return inner, true
}

// statFiles records some files of a folder.
func (h handle) statFiles(base, rel string, names []string) (f StatFolder, ok bool) {
	f = StatFolder{base: base, rel: rel}
	dir, err := h.below(rel, unix.O_PATH|unix.O_DIRECTORY)
	if nothingThere(err) {
		f.absent = true
		return f, true
	}
	if err != nil {
		return f, false
	}
	defer dir.close()
	for _, name := range names {
		id, err := dir.id(filepath.Base(name))
		if kind := fileType(id); err != nil || kind != unix.S_IFREG && id != (fileID{}) {
			return f, false
		}
		f.files = append(f.files, statFile{name: filepath.Base(name), id: id})
	}
	return f, true
}

// isUnchanged reports whether a folder is as it was recorded. at is its base.
func (f StatFolder) isUnchanged(at handle, buffer []byte) bool {
	flags := uint64(unix.O_PATH | unix.O_DIRECTORY)
	switch {
	case f.absent:
		flags = unix.O_PATH // not even a file may be there
	case f.entries != nil:
		flags = unix.O_RDONLY | unix.O_DIRECTORY
	}
	dir, err := at.below(f.rel, flags)
	if f.absent {
		if err == nil {
			dir.close()
		}
		return nothingThere(err)
	}
	if err != nil {
		return false
	}
	defer dir.close()
	if f.entries != nil {
		if now, err := dir.readDirents(buffer); err != nil || !bytes.Equal(now, f.entries) {
			return false
		}
	}
	for i := range f.files {
		file := &f.files[i]
		var id fileID
		if file.link {
			id, err = at.leadsTo(path.Join(f.rel, file.name))
		} else {
			id, err = dir.id(file.name)
		}
		if err != nil || id != file.id {
			return false
		}
	}
	return true
}
