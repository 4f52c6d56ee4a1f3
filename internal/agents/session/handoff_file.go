package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/claudeops/claudeops/internal/system/files"
)

// readHandoff returns the bytes of the handoff in the folder; nil if there is none.
func readHandoff(folder *files.Dir) ([]byte, error) {
	f, err := openLeft(folder, handoffName)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxHandoff+1))
	if err != nil {
		return nil, errors.New("the handoff cannot be read")
	}
	if len(raw) > maxHandoff {
		return nil, fmt.Errorf("the handoff is larger than %d bytes", maxHandoff)
	}
	return raw, nil
}

// openLeft opens a file that an agent left in the folder; nil if there is none. Whatever the agent put there: only a
// regular file is opened, links are not followed, and nothing blocks.
func openLeft(folder *files.Dir, name string) (*os.File, error) {
	named, err := folder.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be looked at", name)
	}
	if !named.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	if files.HardLinked(named) { // to a file that the agent may not read, perhaps
		return nil, fmt.Errorf("%s is a file that has another name as well", name)
	}
	f, opened, err := folder.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened", name)
	}
	if !os.SameFile(named, opened) {
		return nil, errors.Join(fmt.Errorf("%s was exchanged while it was read", name), f.Close())
	}
	return f, nil
}
