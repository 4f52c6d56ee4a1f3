package change

import (
	"io/fs"
	"path"

	"github.com/claudeops/claudeops/internal/system/files"
)

// Stage writes the files of a tree below a folder, where they wait until files.Writing moves the folder to its place.
// at is the file of an error.
func Stage(root *files.Writing, folder string, tree Tree) (at string, err error) {
	made := map[string]bool{}
	for _, name := range tree.Paths() {
		at = path.Join(folder, name)
		if dir := path.Dir(at); !made[dir] {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return at, err
			}
			made[dir] = true
		}
		content, err := tree[name].Content.Bytes()
		if err != nil {
			return at, err
		}
		if err := root.Create(at, content, fs.FileMode(modeOf(tree[name].Executable))); err != nil {
			return at, err
		}
	}
	return "", nil
}
