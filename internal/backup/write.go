package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/store"
)

// Source is what is backed up.
type Source struct {
	// Copy writes a sound copy of the database to a new file; see store.Store.CopyTo.
	Copy func(ctx context.Context, path string) (store.Copied, error)
	// Key is the content of the key's file, nil if there is none. It is asked after the database was copied, so that it is
	// there for every mark that the copy knows of.
	Key     func() ([]byte, error)
	Version string
	Now     func() time.Time
}

// Write writes a backup to out. The copy of the database is made in the folder scratch and removed again. Nothing is written
// to out before the copy was found sound. What killed backups have left in the folder is removed.
func Write(ctx context.Context, src Source, scratch string, out io.Writer) (Manifest, error) {
	w, err := newWorkplace(scratch)
	if err != nil {
		return Manifest{}, unwritten(err)
	}
	defer w.leave()
	return w.write(ctx, src, out)
}

func (w *workplace) write(ctx context.Context, src Source, out io.Writer) (Manifest, error) {
	path := w.in(databaseName)
	copied, err := src.Copy(ctx, path)
	if err != nil {
		return Manifest{}, err
	}
	key, err := src.Key()
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Format: format, MadeAt: src.Now().UTC().Truncate(time.Second), Version: src.Version,
		Schema: copied.Schema, Rows: copied.Audit.Rows, Head: copied.Audit.Head,
	}
	database, err := describe(path)
	if err != nil {
		return Manifest{}, unwritten(err)
	}
	m.Files = append(m.Files, database)
	if key != nil {
		m.Files = append(m.Files, File{Name: keyName, Size: int64(len(key)), SHA256: sum(key)})
	}
	if err := pack(ctx, m, path, key, out); err != nil {
		return Manifest{}, unwritten(err)
	}
	return m, nil
}

func pack(ctx context.Context, m Manifest, database string, key []byte, out io.Writer) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	archive := tar.NewWriter(out)
	if err := add(ctx, archive, m, File{Name: manifestName, Size: int64(len(raw))}, bytes.NewReader(raw)); err != nil {
		return err
	}
	for _, f := range m.Files {
		var content io.Reader = bytes.NewReader(key)
		if f.Name == databaseName {
			file, err := os.Open(database)
			if err != nil {
				return err
			}
			defer file.Close()
			content = file
		}
		if err := add(ctx, archive, m, f, content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func add(ctx context.Context, archive *tar.Writer, m Manifest, f File, content io.Reader) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: f.Name, Size: f.Size, Mode: 0o600, ModTime: m.MadeAt, Format: tar.FormatPAX,
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, reader{ctx, content})
	return err
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

func describe(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	return File{Name: filepath.Base(path), Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// fileCode tells a folder or file that the caller named badly from a disk that fails.
func fileCode(err error) fault.Code {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.NotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EROFS):
		return fault.Misconfigured
	}
	return fault.Internal
}

// unwritten is the failure to write a backup. Faults are passed on.
func unwritten(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.From(err)
	}
	return fault.Wrap(err, fileCode(err), "the backup cannot be written: %s", store.FileReason(err))
}
