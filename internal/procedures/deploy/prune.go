package deploy

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// keepSnapshots is the default number of snapshots that Prune keeps.
const keepSnapshots = 100

// keepCommits is how long the files of a commit of another repository are kept after their last use. They can be
// fetched again.
const keepCommits = 30 * 24 * time.Hour

// Prune removes all snapshots except the newest keep, at least one, and the contents that no snapshot needs any more:
// every snapshot that is left can be rolled back to, byte for byte. A snapshot of a deployment that replaced a person's
// file stays, with the file, however old it is. With dryRun it only counts. The next call finishes one that was killed.
func (s *Service) Prune(ctx context.Context, keep int, dryRun bool) (out change.Pruned, err error) {
	if err := s.ready(); err != nil {
		return out, faultOf(err)
	}
	if why := s.engine.Closed(); why != "" && !dryRun {
		return out, faultOf(change.NewError(notAllowed, "read_only", []string{"ask_operator"}, "nothing is removed: %s", why))
	}
	out, err = s.engine.Prune(ctx, keep, dryRun)
	if err == nil {
		out.Commits, err = s.pruneCommits(dryRun)
	}
	return out, faulted(err)
}

// pruneCommits removes commits of other repositories that were not used for a while, and what killed processes left
// beside them.
func (s *Service) pruneCommits(dryRun bool) (count int, err error) {
	cache := s.setup.Git.cache
	for _, name := range slices.Concat(files.Glob(cache, filepath.Join("*", "*")), files.Glob(cache, ".checkout-*")) {
		info, err := files.Lstat(name)
		if err != nil || s.engine.State().Now().Sub(info.ModTime()) < keepCommits ||
			strings.HasPrefix(filepath.Base(filepath.Dir(name)), ".") && filepath.Dir(name) != cache {
			continue
		}
		if !dryRun {
			if err := files.RemoveAll(name); err != nil {
				return count, ioError(name, err)
			}
		}
		count++
	}
	return count, nil
}
