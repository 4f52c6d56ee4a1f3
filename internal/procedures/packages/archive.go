package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of an archive.
const (
	maxArchiveBytes  = 50 << 20
	maxUnpackedBytes = 200 << 20
	maxEntries       = 10_000
	maxPathBytes     = 1024
)

// leftOut reports whether a name belongs to files and folders that no archive has, at any depth.
func leftOut(name string, isDir bool) bool {
	switch name {
	case "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "dist", "build",
		".aam":
		return isDir
	}
	return !isDir && strings.HasSuffix(name, ".aam")
}

// Pack makes the archive of a package: a tar of its files, sorted, without times and owners, and compressed, so that
// the same files make the same bytes. Links and special files are an error: what they lead to is not the package's. So
// is every name that Unpack refuses.
func Pack(dir string) ([]byte, error) {
	root, err := files.OpenDir(dir)
	if err != nil {
		return nil, newError(ManifestNotFound, "there is no folder %s", dir).Because(err)
	}
	defer func() { _ = root.Close() }()
	list, err := packedFiles(root)
	if err != nil {
		return nil, err
	}
	return pack(root, list)
}

// pack makes an archive of files below a root.
func pack(root *files.Dir, list []packedFile) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed) // its header has no time and no name
	out := tar.NewWriter(zip)
	total := int64(0)
	for _, f := range list {
		content, _, err := root.Read(f.name, maxUnpackedBytes)
		if err != nil {
			return nil, newError(ManifestInvalid, "%s cannot be packed: %s", f.name, reason(err)).Because(err)
		}
		if total += int64(len(content)); total > maxUnpackedBytes {
			return nil, newError(ManifestInvalid, "the package has more than %d bytes",
				maxUnpackedBytes).Suggest("leave large files out")
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(content)), Mode: f.mode,
			Format: tar.FormatPAX}
		if err := out.WriteHeader(header); err != nil {
			return nil, newError(ManifestInvalid, "%s cannot be packed: %s", f.name, err).Because(err)
		}
		if _, err := out.Write(content); err != nil {
			return nil, newError(InternalError, "the archive cannot be written").Because(err)
		}
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		return nil, newError(InternalError, "the archive cannot be written").Because(err)
	}
	if packed.Len() > maxArchiveBytes {
		return nil, newError(ManifestInvalid, "the archive has %d bytes; at most %d", packed.Len(),
			maxArchiveBytes).Suggest("leave large files out")
	}
	return packed.Bytes(), nil
}

type packedFile struct {
	name string
	mode int64
}

// gitFolder is left out of a package whose folder is a working copy of git. Anything else that git would take for it is
// refused: it could name a program, which the next git in that folder would run.
const gitFolder = ".git"

// packedFiles lists the files of a package, sorted by name. AAM_MANIFEST_INVALID for what no package may have.
func packedFiles(root *files.Dir) ([]packedFile, error) {
	var out []packedFile
	names := newEntryNames()
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return newError(ManifestInvalid, "%s cannot be read: %s", name, reason(err)).Because(err)
		}
		if skip, why := packable(name, d); skip || why != nil {
			return why
		}
		if len(out) == maxEntries {
			return newError(ManifestInvalid, "the package has more than %d files", maxEntries)
		}
		f, err := packedFileOf(name, d)
		if err != nil {
			return err
		}
		if why := names.add(name); why != "" {
			return newError(ManifestInvalid, "%s", why).Suggest("give one of them another name")
		}
		out = append(out, f)
		return nil
	})
	if at := names.repository(); err == nil && at != "" {
		return nil, newError(ManifestInvalid, "git takes %+q for a repository, whose config can name programs",
			at).Suggest("move it out of the package")
	}
	slices.SortFunc(out, func(a, b packedFile) int { return strings.Compare(a.name, b.name) })
	return out, err
}

// packable judges an entry of a package's folder by its name. skip says that it is not packed; the error can be
// fs.SkipDir, for a folder of which nothing is packed, or says why the package cannot be made.
func packable(name string, d fs.DirEntry) (skip bool, err error) {
	leave := func() error {
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	switch {
	case name == ".":
		return true, nil
	case name == gitFolder, leftOut(d.Name(), d.IsDir()):
		return true, leave()
	case badEntry(name) != "":
		return true, newError(ManifestInvalid, "%s",
			badEntry(name)).Suggest("move it out of the package, or give it another name")
	}
	return d.IsDir(), nil
}

func packedFileOf(name string, d fs.DirEntry) (packedFile, error) {
	if !d.Type().IsRegular() {
		return packedFile{}, newError(ManifestInvalid, "%s is a link or a special file; a package has files alone",
			name).Suggest("replace it by a file")
	}
	info, err := d.Info()
	if err != nil {
		return packedFile{}, newError(ManifestInvalid, "%s cannot be read: %s", name, reason(err)).Because(err)
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
		return packedFile{}, newError(ManifestInvalid, "%s has a mode that gives the rights of its owner to all who run it",
			name).Suggest("take that away: chmod ug-s,-t")
	}
	if info.Mode()&0o100 != 0 {
		return packedFile{name, 0o755}, nil
	}
	return packedFile{name, 0o644}, nil
}
