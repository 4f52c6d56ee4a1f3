package gitea

import (
	"context"
	"slices"

	"code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// foreign fills in the pull requests of others into the base branch, with the first page of their files: those that are
// remembered, and of the rest the newest MaxForeign. One whose files cannot be read, or have further pages, is counted as
// not read.
func (p *Provider) foreign(ctx context.Context, snap *gitprovider.Snapshot, open []*gitea.PullRequest) {
	var unread []*gitea.PullRequest
	add := func(pr *gitea.PullRequest, paths []string) {
		one := pullRequest(pr, p.now())
		one.Paths = paths
		snap.Foreign = append(snap.Foreign, one)
	}
	for _, pr := range slices.Backward(open) { // newest first
		one := pullRequest(pr, p.now())
		if gitprovider.MayBeOurs(one) || one.State != gitprovider.StateOpen || one.Base != snap.Base {
			continue
		}
		if paths, ok := p.remembered(ctx, snap.Repo, one.Number, version(pr)); ok {
			add(pr, paths)
		} else {
			unread = append(unread, pr)
		}
	}
	snap.ForeignUnread = max(0, len(unread)-gitprovider.MaxForeign)
	unread = unread[:len(unread)-snap.ForeignUnread]
	pages := make([]page[*gitea.ChangedFile], len(unread))
	errs := make([]error, len(unread))
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for i, pr := range unread {
		group.Go(func() error {
			pages[i], errs[i] = p.filePage(snap.Repo, pr)(ctx, 1)
			return nil
		})
	}
	_ = group.Wait() // no function of it fails
	for i, pr := range unread {
		switch files := pages[i].items; {
		case errs[i] != nil:
			snap.ForeignUnread++
		case pages[i].total > len(files) || pages[i].total < 0 && len(files) >= pageSize:
			snap.ForeignUnread++
			add(pr, namesOf(files))
		default:
			add(pr, p.takePaths(ctx, snap.Repo, pr, files))
		}
	}
	slices.SortFunc(snap.Foreign, func(a, b gitprovider.PullRequest) int { return a.Number - b.Number })
}
