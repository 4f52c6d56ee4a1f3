package packages

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/system/filelock"
	"github.com/claudeops/claudeops/internal/system/files"
)

// begin takes the lock of the workspace, and repairs what a killed process left. A dry run does neither.
func (s *Service) begin(ctx context.Context, dryRun bool) (unlock func(), notes []string, err error) {
	if dryRun {
		return func() {}, nil, nil
	}
	w := workspace{s.settings.Project}
	unlock, err = w.lockFolder(ctx)
	if err != nil {
		return nil, nil, err
	}
	if notes, err = s.mend(ctx, w); err != nil {
		unlock()
		return nil, nil, err
	}
	return unlock, notes, nil
}

// lockFolder keeps other processes from writing the workspace. The folder itself is locked, so that no file is left;
// where that cannot be, a file in it.
func (w workspace) lockFolder(ctx context.Context) (unlock func(), err error) {
	folder, err := openWithin(w.Project, w.dir())
	if err != nil {
		return nil, unwritable(w.dir(), err)
	}
	defer func() { _ = folder.Close() }()
	file, err := folder.Itself()
	if err == nil {
		if _, lockErr := filelock.Try(file, false); lockErr != nil {
			_ = file.Close()
			file, err = folder.OpenLock(".lock")
		}
	}
	if err != nil {
		return nil, unwritable(w.dir(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for {
		taken, err := filelock.Try(file, true)
		switch {
		case taken:
			return func() { _ = file.Close() }, nil
		case err != nil:
			_ = file.Close()
			return nil, unwritable(w.dir(), err)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			_ = file.Close()
			return nil, newError(Busy, "another process has been writing %s all the time that this one waited",
				w.dir()).Suggest("try again")
		}
	}
}

// mend finishes what a killed process left, or reverts it if it cannot be finished, and removes what was only staged.
func (s *Service) mend(ctx context.Context, w workspace) (notes []string, err error) {
	t, err := w.pending()
	if err != nil {
		return nil, err
	}
	root, err := files.OpenWriting(w.Project)
	if err != nil {
		return nil, unwritable(w.dir(), err)
	}
	defer func() { _ = root.Close() }()
	if t == nil {
		if err := root.RemoveAll(temporary); err != nil {
			return nil, unwritable(w.dir(), err)
		}
		return nil, nil
	}
	said := "a change of the packages that was cut off was finished"
	if more, err := s.finish(ctx, root, t); err != nil {
		if back := s.takeBack(ctx, root, t); back != nil {
			return nil, errors.Join(err, back)
		}
		said = "a change of the packages that was cut off could not be finished, and was taken back: " + err.Error()
	} else {
		notes = more
	}
	return append([]string{said}, notes...), nil
}

// pending returns the transaction that a killed process left; nil if there is none.
func (w workspace) pending() (*transaction, error) {
	text, err := readBelow(w.Project, filepath.Join(w.Project, filepath.FromSlash(transactionFile)), 4*maxLockBytes)
	if err != nil || text == nil {
		return nil, err
	}
	var t transaction
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, newError(ConfigInvalid, "%s, which a process that was cut off has left, cannot be read",
			transactionFile).Because(err)
	}
	return &t, nil
}
