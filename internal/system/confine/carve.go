package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mostPaths bounds the number of rules for one command. What lies beyond is not permitted.
const mostPaths = 4000

// carve returns paths that together cover everything below root except hidden. Rules of Landlock only permit, so a
// folder that contains something hidden is replaced by its other contents. All paths must be resolved; root is not
// followed if it is a link.
func carve(root string, hidden []string) []string {
	return carver{hidden}.below(root, nil)
}

type carver struct{ hidden []string }

func (c carver) below(path string, out []string) []string {
	inside := false
	for _, h := range c.hidden {
		if contains(h, path) {
			return out
		}
		inside = inside || contains(path, h)
	}
	if !inside {
		return append(out, path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return out
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 { // its target counts
			continue
		}
		if len(out) >= mostPaths {
			return out
		}
		out = c.below(filepath.Join(path, entry.Name()), out)
	}
	return out
}

// contains reports whether path is folder or lies below it.
func contains(folder, path string) bool {
	folder = strings.TrimSuffix(folder, "/")
	return path == folder || strings.HasPrefix(path, folder+"/") || folder == ""
}

// resolved returns the paths without links; those that are not there are left out.
func resolved(paths []string) (out []string) {
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(real) {
			out = append(out, real)
		}
	}
	return out
}

// resolvedAsFar returns the paths without links as far as they exist, so that what is made there later counts as well.
func resolvedAsFar(paths []string) (out []string) {
	for _, path := range paths {
		path = filepath.Clean(path)
		if !filepath.IsAbs(path) {
			continue
		}
		for rest, at := "", path; ; rest, at = filepath.Join(filepath.Base(at), rest), filepath.Dir(at) {
			if real, err := filepath.EvalSymlinks(at); err == nil {
				out = append(out, filepath.Join(real, rest))
				break
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return out
}
