package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
)

// Packed is the content of an archive.
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

// refused returns the error of an archive that breaks the rules.
func refused(format string, args ...any) error {
	return newError(IntegrityError, "the archive is refused: "+format, args...)
}

// Unpack reads an archive into memory. AAM_INTEGRITY_ERROR for one that breaks the rules: too large, a name that leads
// out or is there twice (letter case, accents' form and the like aside), that git takes for its own folder or that has
// hidden characters, a mode that gives rights, a link or device, something after its end, no sound manifest at its
// root.
func Unpack(archive []byte) (*Packed, error) {
	if len(archive) > maxArchiveBytes {
		return nil, refused("it has %d bytes; at most %d", len(archive), maxArchiveBytes)
	}
	packed := bytes.NewReader(archive)
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return nil, refused("it is no tar.gz")
	}
	zip.Multistream(false)
	unpacked := io.LimitReader(zip, maxUnpackedBytes+(maxEntries+2)*2*512)
	u := unpacking{in: tar.NewReader(unpacked), names: newEntryNames()}
	for n := 0; ; n++ {
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, refused("it cannot be read to its end")
		}
		if n >= maxEntries {
			return nil, refused("it has more than %d entries", maxEntries)
		}
		if err := u.take(h); err != nil {
			return nil, err
		}
	}
	if err := nothingFollows(unpacked, packed); err != nil {
		return nil, err
	}
	if at := u.names.repository(); at != "" {
		return nil, refused("git takes %+q for a repository, whose config can name programs", at)
	}
	slices.SortFunc(u.out.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return &u.out, u.out.readManifest()
}

// nothingFollows reads to the end of an archive whose tar has ended. Zeros fill a tar up; other programs could read
// anything else.
func nothingFollows(unpacked io.Reader, packed *bytes.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := unpacked.Read(buffer)
		switch {
		case len(bytes.Trim(buffer[:n], "\x00")) > 0:
			return refused("something follows its last entry")
		case errors.Is(err, io.EOF) && packed.Len() > 0:
			return refused("something follows the end of its compressed part, or it is larger than it may be")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return refused("it cannot be read to its end")
		}
	}
}

// unpacking is an archive that is being read.
type unpacking struct {
	in    *tar.Reader
	out   Packed
	names *entryNames
	total int64
}

// take reads one entry.
func (u *unpacking) take(h *tar.Header) error {
	const rights = 0o7000 // set-user-id, set-group-id, sticky
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	switch {
	case h.Mode&rights != 0:
		return refused("%+q has a mode that gives the rights of its owner to all who run it", name)
	case h.Typeflag == tar.TypeDir && (name == "" || name == "."):
		return nil
	case badEntry(name) != "":
		return refused("%s", badEntry(name))
	case h.Typeflag == tar.TypeDir:
		return nil
	case h.Typeflag != tar.TypeReg:
		return refused("%q is a link or a device", name)
	}
	if why := u.names.add(name); why != "" {
		return refused("%s", why)
	}
	if u.total += h.Size; u.total > maxUnpackedBytes {
		return refused("it unpacks to more than %d bytes", maxUnpackedBytes)
	}
	content, err := io.ReadAll(u.in)
	if err != nil {
		return refused("it cannot be read to its end")
	}
	u.out.Files = append(u.out.Files, File{Name: name, Content: content, Executable: h.Mode&0o100 != 0})
	return nil
}

func (p *Packed) readManifest() error {
	i := slices.IndexFunc(p.Files, func(f File) bool { return f.Name == manifestName })
	if i < 0 {
		return refused("it has no %s at its root", manifestName)
	}
	m, problems, _ := readManifest(p.Files[i].Content)
	if len(problems) > 0 {
		return refused("its %s is broken: %s", manifestName, strings.Join(problems, "; "))
	}
	p.Manifest = m
	return nil
}

// checksum returns sha256: and the SHA-256 of the bytes in hexadecimal.
func checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
