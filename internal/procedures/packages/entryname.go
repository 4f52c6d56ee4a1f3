package packages

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
)

// badEntry says why an archive may not have a file or folder of this name; "" if it may.
func badEntry(name string) string {
	switch _, err := files.ParseRel(name, maxPathBytes); {
	case err == nil:
		return ""
	case errors.Is(err, files.ErrNotPath):
		return fmt.Sprintf("%q is no path that a package may have", name)
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

// repository returns a folder that git takes for a repository without a folder .git: in it, or below it, git obeys its
// config, which can name programs. "" if there is none.
func (n *entryNames) repository() string {
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
