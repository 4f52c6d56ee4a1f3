package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/keyfile"
	"github.com/claudeops/claudeops/internal/store"
)

// Unpack puts the files of a backup into a folder, for their owner only. A file that is no whole backup, cut off or altered,
// is invalid_argument.
func Unpack(ctx context.Context, in io.Reader, folder string) (Manifest, error) {
	m, err := walk(ctx, in, func(f File) (io.WriteCloser, error) {
		return os.OpenFile(filepath.Join(folder, f.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	})
	if err != nil {
		return Manifest{}, err
	}
	if m.HoldsKey() {
		text, err := os.ReadFile(filepath.Join(folder, keyName))
		if err == nil {
			_, err = keyfile.Parse(string(text))
		}
		if err != nil {
			return Manifest{}, notOne(nil, "its "+keyName+" holds no key") // the cause might hold a part of it
		}
	}
	return m, nil
}

// walk reads an archive to its end and writes each file of its manifest to what open returns.
func walk(ctx context.Context, in io.Reader, open func(File) (io.WriteCloser, error)) (Manifest, error) {
	archive := tar.NewReader(reader{ctx, in})
	size, err := next(archive, manifestName)
	if err != nil {
		return Manifest{}, err
	}
	if size > maxManifest {
		return Manifest{}, notOne(nil, "its manifest is too large")
	}
	raw, err := io.ReadAll(archive)
	if err != nil {
		return Manifest{}, broken(err)
	}
	m, err := parseManifest(raw)
	if err != nil {
		return Manifest{}, err
	}
	for _, f := range m.Files {
		size, err := next(archive, f.Name)
		if err != nil {
			return Manifest{}, err
		}
		if size != f.Size {
			return Manifest{}, notOne(nil, f.Name+" has not the size that the manifest says")
		}
		if err := extract(archive, f, open); err != nil {
			return Manifest{}, err
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return Manifest{}, notOne(err, "it goes on after its last file")
	}
	return m, nil
}

// next goes to the next file of the archive, which must have the name.
func next(archive *tar.Reader, name string) (size int64, err error) {
	header, err := archive.Next()
	if errors.Is(err, io.EOF) {
		return 0, notOne(err, "it ends before "+name)
	}
	if err != nil {
		return 0, broken(err)
	}
	if header.Typeflag != tar.TypeReg || header.Name != name {
		return 0, notOne(nil, "it holds something else where "+name+" should be")
	}
	return header.Size, nil
}

func extract(archive io.Reader, f File, open func(File) (io.WriteCloser, error)) error {
	out, err := open(f)
	if err != nil {
		return unpacked(err)
	}
	hash, source := sha256.New(), &source{Reader: archive}
	_, err = io.Copy(io.MultiWriter(out, hash), source)
	closed := out.Close()
	switch {
	case source.err != nil:
		return broken(source.err)
	case err != nil || closed != nil:
		return unpacked(errors.Join(err, closed))
	case hex.EncodeToString(hash.Sum(nil)) != f.SHA256:
		return notOne(nil, f.Name+" was altered: it has not the SHA-256 that the manifest says")
	}
	return nil
}

// source remembers why reading failed, which is another matter than why writing did.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// broken is an archive that cannot be read to its end.
func broken(err error) error {
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return fault.From(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return notOne(err, "it is cut off")
	case errors.Is(err, tar.ErrHeader):
		return notOne(err, "it is no tar archive, or a damaged one")
	}
	return fault.Wrap(err, fileCode(err), "the backup cannot be read: %s", store.FileReason(err))
}

func unpacked(err error) error {
	return fault.Wrap(err, fault.Internal, "the backup cannot be unpacked into the state folder: %s", store.FileReason(err))
}
