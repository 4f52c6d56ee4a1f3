package change

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of the paths of files that are put in place, in bytes: what Linux, macOS and Windows with long paths can have.
const (
	maxNameBytes = 255
	maxPathBytes = 4095
)

// Leaves says why a path does not stay below a folder; "" if it does.
func Leaves(p string) string {
	clean := path.Clean(filepath.ToSlash(p))
	switch {
	case p == "" || strings.ContainsRune(p, 0):
		return "is no path"
	case path.IsAbs(clean) || filepath.IsAbs(p) || len(clean) > 1 && clean[1] == ':':
		return "is not relative to its folder"
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "leads out of its folder"
	}
	return ""
}

// unusable says why a file cannot have a path below a folder on every system; "" if it can. Modules go from machine to
// machine.
func unusable(root, rel string) string {
	if why := Leaves(rel); why != "" {
		return why
	}
	if length := len(root) + 1 + len(rel); length > maxPathBytes {
		return fmt.Sprintf("makes a path of %d bytes; at most %d are possible", length, maxPathBytes)
	}
	for _, name := range strings.Split(path.Clean(rel), "/") {
		switch {
		case len(name) > maxNameBytes:
			return fmt.Sprintf("has a name of %d bytes; at most %d are possible", len(name), maxNameBytes)
		case strings.ContainsAny(name, `\:*?"<>|`) || strings.ContainsFunc(name, unicode.IsControl):
			return "has a character that file names of some systems cannot have"
		case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
			return "has a name that ends with a dot or a space, which some systems cut off"
		case files.IsDeviceName(name):
			return "has the name of a device of Windows"
		case IsManifest(name) || strings.HasPrefix(name, temporary):
			return "has a name that deployments use themselves"
		}
		if err := files.CheckName(name); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Below reports whether a path is a folder or lies in it.
func Below(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
