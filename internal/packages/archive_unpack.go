package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
)

// Packed is what an archive holds.
type Packed struct {
	Manifest *Manifest
	Files    []File // sorted by name
}

// File is a file of an archive.
type File struct {
	Name       string // with slashes
	Content    []byte
	Executable bool
}

// refused is the error of an archive that breaks the rules.
func refused(format string, args ...any) error {
	return newError(IntegrityError, "the archive is refused: "+format, args...)
}

// Unpack reads an archive into memory. AAM_INTEGRITY_ERROR for one that breaks the rules: too large, a name that leads out or is there
// twice (letter case aside), a link or device, no sound manifest at its root.
func Unpack(archive []byte) (*Packed, error) {
	if len(archive) > MaxArchiveBytes {
		return nil, refused("it has %d bytes; at most %d", len(archive), MaxArchiveBytes)
	}
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, refused("it is no tar.gz")
	}
	u := unpacking{in: tar.NewReader(io.LimitReader(zip, MaxUnpackedBytes+(MaxEntries+2)*2*512)), seen: map[string]bool{}}
	for n := 0; ; n++ {
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, refused("it cannot be read to its end")
		}
		if n >= MaxEntries {
			return nil, refused("it has more than %d entries", MaxEntries)
		}
		if err := u.take(h); err != nil {
			return nil, err
		}
	}
	if err := u.foldersAreNoFiles(); err != nil {
		return nil, err
	}
	slices.SortFunc(u.out.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return &u.out, u.out.readManifest()
}

// unpacking is an archive that is being read.
type unpacking struct {
	in    *tar.Reader
	out   Packed
	seen  map[string]bool // names in small letters
	total int64
}

// take reads one entry.
func (u *unpacking) take(h *tar.Header) error {
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	switch {
	case h.Typeflag == tar.TypeDir && (name == "" || name == "."):
		return nil
	case badEntry(name) != "":
		return refused("%s", badEntry(name))
	case h.Typeflag == tar.TypeDir:
		return nil
	case h.Typeflag != tar.TypeReg:
		return refused("%q is a link or a device", name)
	case u.seen[strings.ToLower(name)]:
		return refused("%q is there twice", name)
	}
	u.seen[strings.ToLower(name)] = true
	if u.total += h.Size; u.total > MaxUnpackedBytes {
		return refused("it unpacks to more than %d bytes", MaxUnpackedBytes)
	}
	content, err := io.ReadAll(u.in)
	if err != nil {
		return refused("it cannot be read to its end")
	}
	u.out.Files = append(u.out.Files, File{Name: name, Content: content, Executable: h.Mode&0o100 != 0})
	return nil
}

func (u *unpacking) foldersAreNoFiles() error {
	for name := range u.seen {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if u.seen[dir] {
				return refused("%q is a file and a folder", dir)
			}
		}
	}
	return nil
}

func (p *Packed) readManifest() error {
	i := slices.IndexFunc(p.Files, func(f File) bool { return f.Name == ManifestName })
	if i < 0 {
		return refused("it has no %s at its root", ManifestName)
	}
	m, problems, _ := ReadManifest(p.Files[i].Content)
	if len(problems) > 0 {
		return refused("its %s is broken: %s", ManifestName, strings.Join(problems, "; "))
	}
	p.Manifest = m
	return nil
}

// Checksum is sha256: and the SHA-256 of the bytes in hexadecimal.
func Checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
