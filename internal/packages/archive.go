package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of an archive.
const (
	MaxArchiveBytes  = 50 << 20
	MaxUnpackedBytes = 200 << 20
	MaxEntries       = 10_000
	maxPathBytes     = 1024
)

// leftOut are names of files and folders that no archive has, at any depth.
func leftOut(name string, isDir bool) bool {
	switch name {
	case ".git", "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "dist", "build", ".aam":
		return isDir
	}
	return !isDir && strings.HasSuffix(name, ".aam")
}

// Pack makes the archive of a package: a tar of its files, sorted, without times and owners, and compressed, so that the same files make
// the same bytes. Links are an error: what they lead to is not the package's.
func Pack(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, newError(ManifestNotFound, "there is no folder %s", dir).because(err)
	}
	defer func() { _ = root.Close() }()
	files, err := packedFiles(root)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed) // its header has no time and no name
	out := tar.NewWriter(zip)
	total := int64(0)
	for _, f := range files {
		content, err := readFile(root, f.name, MaxUnpackedBytes+1)
		if err != nil {
			return nil, newError(ManifestInvalid, "%s cannot be packed: %s", f.name, reason(err)).because(err)
		}
		if total += int64(len(content)); total > MaxUnpackedBytes {
			return nil, newError(ManifestInvalid, "the package has more than %d bytes", MaxUnpackedBytes).hint("leave large files out")
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(content)), Mode: f.mode, Format: tar.FormatPAX}
		if err := out.WriteHeader(header); err != nil {
			return nil, newError(ManifestInvalid, "%s cannot be packed: %s", f.name, err).because(err)
		}
		if _, err := out.Write(content); err != nil {
			return nil, newError(InternalError, "the archive cannot be written").because(err)
		}
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		return nil, newError(InternalError, "the archive cannot be written").because(err)
	}
	if packed.Len() > MaxArchiveBytes {
		return nil, newError(ManifestInvalid, "the archive has %d bytes; at most %d", packed.Len(), MaxArchiveBytes).hint("leave large files out")
	}
	return packed.Bytes(), nil
}

type packedFile struct {
	name string
	mode int64
}

func packedFiles(root *os.Root) ([]packedFile, error) {
	var out []packedFile
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return newError(ManifestInvalid, "%s cannot be read: %s", name, reason(err)).because(err)
		case name == ".":
			return nil
		case leftOut(d.Name(), d.IsDir()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return newError(ManifestInvalid, "%s is a link or a special file; a package has files alone", name).hint("replace it by a file")
		case badEntry(name) != "":
			return newError(ManifestInvalid, "%s", badEntry(name))
		case len(out) == MaxEntries:
			return newError(ManifestInvalid, "the package has more than %d files", MaxEntries)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		out = append(out, packedFile{name, mode})
		return nil
	})
	slices.SortFunc(out, func(a, b packedFile) int { return strings.Compare(a.name, b.name) })
	return out, err
}

// badEntry says why an archive may not have a file of this name; "" if it may.
func badEntry(name string) string {
	switch {
	case name == "" || !utf8.ValidString(name) || strings.ContainsAny(name, "\\\x00"):
		return fmt.Sprintf("%q is no path that a package may have", name)
	case path.IsAbs(name) || len(name) > 1 && name[1] == ':':
		return fmt.Sprintf("%q is not relative", name)
	case path.Clean(name) != name || slices.Contains(strings.Split(name, "/"), ".."):
		return fmt.Sprintf("%q leads out of the package, or is written in a roundabout way", name)
	case len(name) > maxPathBytes:
		return fmt.Sprintf("%q has more than %d bytes", name[:60]+"...", maxPathBytes)
	}
	return ""
}

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

// Unpack reads an archive into memory. AAM_INTEGRITY_ERROR for one that breaks the rules: too large, a name that leads out or is there
// twice (letter case aside), a link or device, no sound manifest at its root.
func Unpack(archive []byte) (*Packed, error) {
	bad := func(format string, args ...any) error {
		return newError(IntegrityError, "the archive is refused: "+format, args...)
	}
	if len(archive) > MaxArchiveBytes {
		return nil, bad("it has %d bytes; at most %d", len(archive), MaxArchiveBytes)
	}
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, bad("it is no tar.gz")
	}
	in := tar.NewReader(io.LimitReader(zip, MaxUnpackedBytes+(MaxEntries+2)*2*512))
	out := &Packed{}
	seen := map[string]bool{}
	total := int64(0)
	for n := 0; ; n++ {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, bad("it cannot be read to its end")
		}
		name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
		switch {
		case n >= MaxEntries:
			return nil, bad("it has more than %d entries", MaxEntries)
		case h.Typeflag == tar.TypeDir && (name == "" || name == "."):
			continue
		case badEntry(name) != "":
			return nil, bad("%s", badEntry(name))
		case h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag != tar.TypeReg:
			return nil, bad("%q is a link or a device", name)
		case seen[strings.ToLower(name)]:
			return nil, bad("%q is there twice", name)
		}
		seen[strings.ToLower(name)] = true
		if total += h.Size; total > MaxUnpackedBytes {
			return nil, bad("it unpacks to more than %d bytes", MaxUnpackedBytes)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, bad("it cannot be read to its end")
		}
		out.Files = append(out.Files, File{Name: name, Content: content, Executable: h.Mode&0o100 != 0})
	}
	for name := range seen {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if seen[dir] {
				return nil, bad("%q is a file and a folder", dir)
			}
		}
	}
	slices.SortFunc(out.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return out, out.readManifest(bad)
}

func (p *Packed) readManifest(bad func(string, ...any) error) error {
	i := slices.IndexFunc(p.Files, func(f File) bool { return f.Name == ManifestName })
	if i < 0 {
		return bad("it has no %s at its root", ManifestName)
	}
	m, problems, _ := ReadManifest(p.Files[i].Content)
	if len(problems) > 0 {
		return bad("its %s is broken: %s", ManifestName, strings.Join(problems, "; "))
	}
	p.Manifest = m
	return nil
}

// Checksum is sha256: and the SHA-256 of the bytes in hexadecimal.
func Checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
