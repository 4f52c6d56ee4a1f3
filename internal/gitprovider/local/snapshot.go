package local

import (
	"context"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Snapshot implements gitprovider.Provider. It changes nothing in the repository; like every look at pull requests it
// may bring their records up to date (see Provider). DefaultBranch is the branch that HEAD names, which in an ordinary
// repository is the one that is checked out; "" if there is no such branch.
func (p *Provider) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	repo, err := p.open(ctx, q.Repo)
	if err != nil {
		return nil, err
	}
	seen, err := p.look(ctx, repo)
	if err != nil {
		return nil, err
	}
	base, err := p.base(ctx, repo, seen.refs, q.Base)
	if err != nil {
		return nil, err
	}
	snap := &gitprovider.Snapshot{
		Repo: repo.ref, URL: repo.url(), DefaultBranch: seen.refs.head, Base: base, BaseCommit: seen.refs.tips[base],
		Tips: map[string]string{},
	}
	for _, pr := range seen.open {
		switch {
		case gitprovider.MayBeOurs(pr):
			snap.Open = append(snap.Open, pr)
		case q.Foreign && pr.Base == base:
			snap.Foreign = append(snap.Foreign, pr)
		}
	}
	for _, branch := range q.Branches {
		if tip, exists := seen.refs.tips[branch]; exists {
			snap.Tips[branch] = tip
		}
	}
	if snap.Closed, err = p.closedSince(ctx, repo, q.ClosedSince); err != nil {
		return nil, err
	}
	return snap, p.readFiles(ctx, repo, snap, q)
}

// readFiles fills in the tree, and the contents if they are wanted.
func (p *Provider) readFiles(ctx context.Context, repo *repository, snap *gitprovider.Snapshot,
	q gitprovider.SnapshotQuery) error {
	w, err := p.workspace(repo, snap.BaseCommit, false)
	if err != nil {
		return err
	}
	defer w.close()
	o, err := w.open(ctx)
	if err != nil {
		return err
	}
	snap.Tree, err = readTrees(o, snap.BaseCommit, q.Paths, w.idLen)
	if err == nil && q.Contents {
		snap.Contents, err = readContents(o, snap.Tree, q.Paths)
	}
	return o.close(err)
}

// closedSince lists what was closed without merging. Its paths are those at the time.
func (p *Provider) closedSince(ctx context.Context, repo *repository, since time.Time) ([]gitprovider.PullRequest,
	error) {
	if since.IsZero() {
		return nil, nil
	}
	closed, err := p.records.PRs(ctx, repo.key(), gitprovider.StateClosed)
	if err != nil {
		return nil, err
	}
	closed = slices.DeleteFunc(closed, func(pr gitprovider.PullRequest) bool {
		return notOurs(pr) || pr.ClosedAt.Before(since)
	})
	for i := range closed {
		closed[i].URL = repo.prURL(closed[i].Number)
	}
	return closed, nil
}

func notOurs(pr gitprovider.PullRequest) bool { return !gitprovider.MayBeOurs(pr) }
