package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/fault"
)

// WriteFile writes a backup to a file that only its owner can read. It gets its name when it is complete, on disk, and was
// read again; until then, and after any failure, what was there under that name is as it was. A file that exists is conflict
// unless force is set; then it is replaced, a symbolic link and not what it leads to.
func WriteFile(ctx context.Context, src Source, path string, force bool) (Manifest, error) {
	if err := mayWrite(path, force); err != nil {
		return Manifest{}, err
	}
	w, err := newWorkplace(filepath.Dir(path))
	if err != nil {
		return Manifest{}, unwritten(err)
	}
	defer w.leave()
	f, err := os.OpenFile(w.in(draftName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return Manifest{}, unwritten(err)
	}
	m, err := w.write(ctx, src, f)
	if flushed := errors.Join(f.Sync(), f.Close()); err == nil {
		err = unwritten(flushed)
	}
	if err != nil {
		return Manifest{}, err
	}
	if err := readAgain(ctx, f.Name()); err != nil {
		return Manifest{}, err
	}
	return m, name(f.Name(), path, force)
}

func mayWrite(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unwritten(err)
	case info.IsDir():
		return fault.New(fault.Conflict, "%s is a folder; name a file", path)
	case !force:
		return there(path)
	}
	return nil
}

func there(path string) error {
	return fault.New(fault.Conflict, "%s is there already; name another file, or replace it with --force", path)
}

// readAgain finds out whether the disk gives back what was written.
func readAgain(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return unwritten(err)
	}
	defer f.Close()
	if _, err := walk(ctx, f, func(File) (io.WriteCloser, error) { return discard{io.Discard}, nil }); err != nil {
		return fault.Wrap(err, fault.Internal, "the backup cannot be read again; check the disk")
	}
	return nil
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

// name gives the complete file its name. Without force somebody who was faster keeps it.
func name(draft, path string, force bool) error {
	link := os.Rename
	if !force {
		link = os.Link
	}
	err := link(draft, path)
	if errors.Is(err, fs.ErrExist) {
		return there(path)
	}
	if err != nil && !force { // a file system without hard links
		if err := mayWrite(path, false); err != nil {
			return err
		}
		err = os.Rename(draft, path)
	}
	if err != nil {
		return unwritten(err)
	}
	return unwritten(syncDir(filepath.Dir(path)))
}
