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
	"path"
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
			return nil, newError(ManifestInvalid, "%s cannot be packed: %s", f.name, pathlessError(err)).Because(err)
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
			return newError(ManifestInvalid, "%s cannot be read: %s", name, pathlessError(err)).Because(err)
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
	if at := names.hiddenRepository(); err == nil && at != "" {
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
		return packedFile{}, newError(ManifestInvalid, "%s cannot be read: %s", name, pathlessError(err)).Because(err)
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

// archiveError returns the error of an archive that breaks the rules.
func archiveError(format string, args ...any) error {
	return newError(IntegrityError, "the archive is refused: "+format, args...)
}

// Unpack reads an archive into memory. AAM_INTEGRITY_ERROR for one that breaks the rules: too large, a name that leads
// out or is there twice (letter case, accents' form and the like aside), that git takes for its own folder or that has
// hidden characters, a mode that gives rights, a link or device, something after its end, no sound manifest at its
// root.
func Unpack(archive []byte) (*Packed, error) {
	if len(archive) > maxArchiveBytes {
		return nil, archiveError("it has %d bytes; at most %d", len(archive), maxArchiveBytes)
	}
	packed := bytes.NewReader(archive)
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return nil, archiveError("it is not a tar.gz")
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
			return nil, archiveError("it cannot be read to its end")
		}
		if n >= maxEntries {
			return nil, archiveError("it has more than %d entries", maxEntries)
		}
		if err := u.extractEntry(h); err != nil {
			return nil, err
		}
	}
	if err := nothingFollows(unpacked, packed); err != nil {
		return nil, err
	}
	if at := u.names.hiddenRepository(); at != "" {
		return nil, archiveError("git takes %+q for a repository, whose config can name programs", at)
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
			return archiveError("something follows its last entry")
		case errors.Is(err, io.EOF) && packed.Len() > 0:
			return archiveError("something follows the end of its compressed part, or it is larger than it may be")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return archiveError("it cannot be read to its end")
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

// extractEntry reads one entry.
func (u *unpacking) extractEntry(h *tar.Header) error {
	const rights = 0o7000 // set-user-id, set-group-id, sticky
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	switch {
	case h.Mode&rights != 0:
		return archiveError("%+q has a mode that gives the rights of its owner to all who run it", name)
	case h.Typeflag == tar.TypeDir && (name == "" || name == "."):
		return nil
	case badEntry(name) != "":
		return archiveError("%s", badEntry(name))
	case h.Typeflag == tar.TypeDir:
		return nil
	case h.Typeflag != tar.TypeReg:
		return archiveError("%q is a link or a device", name)
	}
	if why := u.names.add(name); why != "" {
		return archiveError("%s", why)
	}
	if u.total += h.Size; u.total > maxUnpackedBytes {
		return archiveError("it unpacks to more than %d bytes", maxUnpackedBytes)
	}
	content, err := io.ReadAll(u.in)
	if err != nil {
		return archiveError("it cannot be read to its end")
	}
	u.out.Files = append(u.out.Files, File{Name: name, Content: content, Executable: h.Mode&0o100 != 0})
	return nil
}

func (p *Packed) readManifest() error {
	i := slices.IndexFunc(p.Files, func(f File) bool { return f.Name == manifestName })
	if i < 0 {
		return archiveError("it has no %s at its root", manifestName)
	}
	m, problems, _ := readManifest(p.Files[i].Content)
	if len(problems) > 0 {
		return archiveError("its %s is broken: %s", manifestName, strings.Join(problems, "; "))
	}
	p.Manifest = m
	return nil
}

// checksum returns sha256: and the SHA-256 of the bytes in hexadecimal.
func checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// badEntry says why an archive may not have a file or folder of this name; "" if it may.
func badEntry(name string) string {
	switch _, err := files.ParseRel(name, maxPathBytes); {
	case err == nil:
		return ""
	case errors.Is(err, files.ErrNotPath):
		return fmt.Sprintf("%q is not a path that a package may have", name)
	case errors.Is(err, files.ErrNotRelative):
		return fmt.Sprintf("%q is not relative", name)
	case errors.Is(err, files.ErrRoundabout):
		return fmt.Sprintf("%q leads out of the package, or is written in a roundabout way", name)
	case errors.Is(err, files.ErrPathTooLong):
		return fmt.Sprintf("%q has more than %d bytes", name[:60]+"...", maxPathBytes)
	default:
		return fmt.Sprintf("%+q %s", name, err)
	}
}

// entryNames are the names of a package's files and of the folders that they are in, as the file system compares them
// that confuses most.
type entryNames struct {
	files   map[string]string // a name as it is written, by how it is compared
	folders map[string]string
	known   map[string]bool // folders as they are written
}

func newEntryNames() *entryNames {
	return &entryNames{files: map[string]string{}, folders: map[string]string{}, known: map[string]bool{}}
}

// add takes a file's name, and says why it and those before cannot be in one package; "" if they can.
func (n *entryNames) add(name string) string {
	for dir := path.Dir(name); dir != "." && !n.known[dir]; dir = path.Dir(dir) {
		key := comparable(dir)
		if file, isFile := n.files[key]; isFile {
			return fmt.Sprintf("%+q is a file and a folder", file)
		}
		if other, has := n.folders[key]; has {
			return fmt.Sprintf("%+q is there twice: it and %+q are one folder on some file systems", dir, other)
		}
		n.folders[key], n.known[dir] = dir, true
	}
	key := comparable(name)
	other, twice := n.files[key]
	switch _, isFolder := n.folders[key]; {
	case isFolder:
		return fmt.Sprintf("%+q is a file and a folder", name)
	case twice && other != name:
		return fmt.Sprintf("%+q is there twice: it and %+q are one file on some file systems", name, other)
	case twice:
		return fmt.Sprintf("%+q is there twice", name)
	}
	n.files[key] = name
	return ""
}

// comparable returns the form of a path in which add compares it. NTFS ignores dots and spaces at the end of a name,
// and $DATA is its name for a file's content.
func comparable(name string) string {
	parts := strings.Split(files.FoldName(name), "/")
	for i, part := range parts {
		stem, _, _ := strings.Cut(part, "::$")
		if parts[i] = strings.TrimRight(stem, ". "); parts[i] == "" {
			parts[i] = part
		}
	}
	return strings.Join(parts, "/")
}

// hiddenRepository returns a folder that git takes for a repository without a folder .git: in it, or below it, git
// obeys its config, which can name programs. "" if there is none.
func (n *entryNames) hiddenRepository() string {
	for key, head := range n.files {
		if path.Base(key) != "head" {
			continue
		}
		beside := func(name string) string { return path.Join(path.Dir(key), name) }
		_, shared := n.files[beside("commondir")]
		_, objects := n.folders[beside("objects")]
		_, refs := n.folders[beside("refs")]
		if shared || objects && refs {
			return path.Dir(head)
		}
	}
	return ""
}
