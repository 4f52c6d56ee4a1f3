package deploy

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the paths of files that are put in place, in bytes: what Linux, macOS and Windows with long paths can have.
const (
	maxNameBytes = 255
	maxPathBytes = 4095
)

// leaves says why a path does not stay below a folder; "" if it does.
func leaves(p string) string {
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

// unusable says why a file cannot have a path below a folder on every system; "" if it can. Modules go from machine to machine.
func unusable(root, rel string) string {
	if why := leaves(rel); why != "" {
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
		case isDevice(name):
			return "has the name of a device of Windows"
		case isManifest(name) || strings.HasPrefix(name, temporary):
			return "has a name that deployments use themselves"
		}
	}
	return ""
}

// isDevice reports whether Windows takes a name for a device, whatever follows its first dot.
func isDevice(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	name = strings.TrimSpace(name)
	switch name {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	number, ok := strings.CutPrefix(name, "com")
	if !ok {
		number, ok = strings.CutPrefix(name, "lpt")
	}
	return ok && utf8.RuneCountInString(number) == 1 && strings.Contains("123456789¹²³", number)
}

// below reports whether a path is a folder or lies in it.
func below(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
