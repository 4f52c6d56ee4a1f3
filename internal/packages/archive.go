package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
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
