package gitea

import (
	"context"
	"slices"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// snapshots reads what the gates need to know of a repository.
type snapshots struct {
	api      *api
	trees    trees
	branches branches
	pulls    pulls
}

// firstRound holds the results of the first round of reads.
type firstRound struct {
	repo   *gitea.Repository
	base   baseTree
	open   []*gitea.PullRequest
	closed []*gitea.PullRequest
	tips   map[string]string
	// lastNumber is the highest number among the open ones and among those others that were opened before this round. The
	// two lists are read by two requests: one that was opened in between and is closed by now proves nothing about those
	// opened just before, which may be in neither list.
	lastNumber int
}

func (s snapshots) readSnapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	if q.FilesOnly {
		return s.readFiles(ctx, q)
	}
	l, err := s.firstRound(ctx, q)
	if err != nil {
		return nil, err
	}
	snap := &gitprovider.Snapshot{
		Repo: gitprovider.RepoRef{Owner: q.Repo.Owner, Name: l.repo.Name, Remote: q.Repo.Remote}, URL: l.repo.HTMLURL,
		RepoID:        repoID(l.repo.ID),
		DefaultBranch: l.repo.DefaultBranch, Base: q.Base, BaseCommit: l.base.commit,
		Archived: l.repo.Archived, Fork: l.repo.Fork, Tree: l.base.tree, Tips: l.tips, LastNumber: l.lastNumber,
	}
	if l.repo.Owner != nil && l.repo.Owner.UserName != "" {
		snap.Repo.Owner = l.repo.Owner.UserName
	}
	if snap.Base == "" {
		snap.Base = snap.DefaultBranch
	}
	if err := s.secondRound(ctx, q, snap, l); err != nil {
		return nil, err
	}
	return snap, nil
}

// readFiles reads a branch without pull requests: one request for the tree, and those for contents.
func (s snapshots) readFiles(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	base, err := s.trees.branch(ctx, q.Repo, q.Base, q.Paths)
	switch {
	case isNoCommit(err) && q.Base == "":
		return nil, forge.NoFirstCommit(q.Repo)
	case isNoCommit(err):
		return nil, forge.NoBase(q.Repo, q.Base, "")
	case err != nil:
		return nil, err
	}
	snap := &gitprovider.Snapshot{Repo: q.Repo, Base: q.Base, BaseCommit: base.commit, Tree: base.tree}
	if q.Contents {
		snap.Contents, err = s.trees.contents(ctx, q.Repo, base, q.Paths)
	}
	return snap, err
}

func (s snapshots) firstRound(ctx context.Context, q gitprovider.SnapshotQuery) (firstRound, error) {
	var l firstRound
	var repoErr, baseErr error
	err := forge.Together(
		func() error {
			l.repo, repoErr = s.api.readRepository(ctx, q.Repo)
			return repoErr
		},
		func() error {
			l.base, baseErr = s.trees.branch(ctx, q.Repo, q.Base, q.Paths)
			return baseErr
		},
		forge.Into(&l.open, func() ([]*gitea.PullRequest, error) { return s.pulls.readOpenPulls(ctx, q.Repo) }),
		func() (err error) {
			l.closed, l.lastNumber, err = s.pulls.closed(ctx, q.Repo, q.ClosedSince)
			return err
		},
		forge.Into(&l.tips, func() (map[string]string, error) { return s.branches.tips(ctx, q.Repo, q.Branches) }),
	)
	switch {
	case repoErr != nil:
		return l, repoErr
	case isNoCommit(baseErr):
		return l, noBase(l.repo, q, baseErr)
	case baseErr != nil:
		return l, baseErr
	}
	if off := s.api.switchedOff(l.repo, q.Repo); off != nil {
		return l, off
	}
	for _, pr := range l.open {
		l.lastNumber = max(l.lastNumber, int(pr.Index))
	}
	return l, err
}

func noBase(repo *gitea.Repository, q gitprovider.SnapshotQuery, cause error) error {
	switch {
	case repo.Empty:
		return forge.NoFirstCommit(q.Repo)
	case q.Base == "":
		return fault.Wrap(cause, fault.NotFound, "the default branch %s of %s does not exist; name an existing base branch",
			repo.DefaultBranch, q.Repo)
	}
	return forge.NoBase(q.Repo, q.Base, repo.DefaultBranch)
}

// secondRound reads the files of pull requests, and contents.
func (s snapshots) secondRound(ctx context.Context, q gitprovider.SnapshotQuery, snap *gitprovider.Snapshot,
	l firstRound) error {
	ours := slices.DeleteFunc(slices.Concat(l.open, l.closed), func(pr *gitea.PullRequest) bool {
		return !gitprovider.MayBeOurs(s.pulls.convert(pr))
	})
	var prs []gitprovider.PullRequest
	err := forge.Together(
		forge.Into(&prs, func() ([]gitprovider.PullRequest, error) { return s.pulls.withPaths(ctx, snap.Repo, ours) }),
		func() (err error) {
			if q.Contents {
				snap.Contents, err = s.trees.contents(ctx, snap.Repo, l.base, q.Paths)
			}
			return err
		},
		func() error {
			if q.Foreign {
				s.foreign(ctx, snap, l.open)
			}
			return nil
		},
	)
	for _, pr := range prs {
		switch {
		case pr.State == gitprovider.StateOpen:
			snap.Open = append(snap.Open, pr)
		case !q.ClosedSince.IsZero() && pr.State == gitprovider.StateClosed:
			snap.Closed = append(snap.Closed, pr)
		}
	}
	return err
}

// foreign fills in the pull requests of others into the base branch, with the first page of their files: those that are
// remembered, and of the rest the newest MaxForeign. One whose files cannot be read, or have further pages, is counted
// as not read.
func (s snapshots) foreign(ctx context.Context, snap *gitprovider.Snapshot, open []*gitea.PullRequest) {
	files := s.pulls.files
	var unread []*gitea.PullRequest
	add := func(pr *gitea.PullRequest, paths []string) {
		one := s.pulls.convert(pr)
		one.Paths = paths
		snap.Foreign = append(snap.Foreign, one)
	}
	for _, pr := range slices.Backward(open) { // newest first
		one := s.pulls.convert(pr)
		if gitprovider.MayBeOurs(one) || one.State != gitprovider.StateOpen || one.Base != snap.Base {
			continue
		}
		if paths, ok := files.remembered(ctx, snap.Repo, pr); ok {
			add(pr, paths)
		} else {
			unread = append(unread, pr)
		}
	}
	snap.ForeignUnread = max(0, len(unread)-gitprovider.MaxForeign)
	unread = unread[:len(unread)-snap.ForeignUnread]
	pages := make([]page[*gitea.ChangedFile], len(unread))
	errs := make([]error, len(unread))
	_ = forge.Each(ctx, unread, func(ctx context.Context, i int, pr *gitea.PullRequest) error { // none fails
		pages[i], errs[i] = files.listChangedFiles(snap.Repo, pr)(ctx, 1)
		return nil
	})
	for i, pr := range unread {
		switch first := pages[i].items; {
		case errs[i] != nil:
			snap.ForeignUnread++
		case pages[i].total > len(first) || pages[i].total < 0 && len(first) >= pageSize:
			snap.ForeignUnread++
			add(pr, namesOf(first))
		default:
			add(pr, files.fromList(ctx, snap.Repo, pr, first))
		}
	}
	slices.SortFunc(snap.Foreign, func(a, b gitprovider.PullRequest) int { return a.Number - b.Number })
}
