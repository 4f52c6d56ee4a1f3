package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// readHandoff returns the bytes of the handoff in the folder; nil if there is none. Whatever the agent put there: only a
// regular file of at most MaxHandoff bytes is read, links are not followed, and nothing blocks.
func readHandoff(folder *os.Root) ([]byte, error) {
	named, err := folder.Lstat(handoffName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.New("the handoff cannot be looked at")
	}
	if !named.Mode().IsRegular() {
		return nil, errors.New("the handoff is no regular file")
	}
	f, err := folder.OpenFile(handoffName, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.New("the handoff cannot be opened")
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, errors.New("the handoff was exchanged while it was read")
	}
	raw, err := io.ReadAll(io.LimitReader(f, MaxHandoff+1))
	if err != nil {
		return nil, errors.New("the handoff cannot be read")
	}
	if len(raw) > MaxHandoff {
		return nil, fmt.Errorf("the handoff is larger than %d bytes", MaxHandoff)
	}
	return raw, nil
}
