package change

import (
	"fmt"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/system/files"
)

// outwardLink returns the link by which a path leads out of the folder that holds the link, the deepest of several, and
// where it leads; "" if there is none.
func outwardLink(name string) (link, target string) {
	for name = filepath.Clean(name); filepath.Dir(name) != name; name = filepath.Dir(name) {
		within := files.Resolve(filepath.Dir(name))
		if at := files.Resolve(name); at != filepath.Join(within, filepath.Base(name)) && !Below(within, at) {
			return name, at
		}
	}
	return "", ""
}

// outward says what to do about a path that a link leads out of its folder; "" if none does.
func outward(name string) string {
	link, target := outwardLink(name)
	switch {
	case link == "":
		return ""
	case filepath.Base(link) == ".codex":
		return fmt.Sprintf("%s is a link to %s, and no link is followed out of its folder; set CODEX_HOME=%s", link, target,
			target)
	}
	return fmt.Sprintf(
		"%s is a link to %s, and no link is followed out of its folder; put a folder in its place, or mount that one there",
		link, target)
}
