package gitea

import (
	"context"
	"slices"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// looked is what the first round of reads of a Snapshot brings.
type looked struct {
	repo   *gitea.Repository
	base   baseTree
	open   []*gitea.PullRequest
	closed []*gitea.PullRequest
	tips   map[string]string
	// lastNumber is the highest number among all that was read, those included that are in neither list.
	lastNumber int
}

// Snapshot implements gitprovider.Provider. The first round reads repository, tree, open and closed pull requests (and
// branch tips, if asked for) side by side; the second the files of the pull requests that may be ours and were not seen
// at their present commits before (and contents, if asked for).
//
// Beside the port's codes: repo_not_allowed for a repository whose pull requests are switched off.
func (p *Provider) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	l, err := p.look(ctx, q)
	if err != nil {
		return nil, err
	}
	snap := &gitprovider.Snapshot{
		Repo: gitprovider.RepoRef{Owner: q.Repo.Owner, Name: l.repo.Name, Remote: q.Repo.Remote}, URL: l.repo.HTMLURL,
		DefaultBranch: l.repo.DefaultBranch, Base: q.Base, BaseCommit: l.base.commit,
		Archived: l.repo.Archived, Fork: l.repo.Fork, Tree: l.base.tree, Tips: l.tips, LastNumber: l.lastNumber,
	}
	if l.repo.Owner != nil && l.repo.Owner.UserName != "" {
		snap.Repo.Owner = l.repo.Owner.UserName
	}
	if snap.Base == "" {
		snap.Base = snap.DefaultBranch
	}
	if err := p.fill(ctx, q, snap, l); err != nil {
		return nil, p.judge(err, snap.Repo, "")
	}
	return snap, nil
}

// look is the first round.
func (p *Provider) look(ctx context.Context, q gitprovider.SnapshotQuery) (looked, error) {
	var l looked
	var repoErr, baseErr error
	err := together(
		func() error {
			l.repo, repoErr = p.repository(ctx, q.Repo)
			return repoErr
		},
		func() error {
			l.base, baseErr = p.readTree(ctx, q.Repo, q.Base, q.Paths)
			return baseErr
		},
		func() (err error) {
			l.open, err = p.openPulls(ctx, q.Repo)
			return err
		},
		func() (err error) {
			l.closed, l.lastNumber, err = p.closedPulls(ctx, q.Repo, q.ClosedSince)
			return err
		},
		func() (err error) {
			l.tips, err = p.tips(ctx, q.Repo, q.Branches)
			return err
		},
	)
	switch {
	case repoErr != nil:
		return l, p.judge(repoErr, q.Repo, "")
	case isNoCommit(baseErr):
		return l, p.noBase(l.repo, q, baseErr)
	case baseErr != nil:
		return l, p.judge(baseErr, q.Repo, "")
	}
	if off := p.switchedOff(l.repo, q.Repo); off != nil {
		return l, off
	}
	for _, pr := range l.open {
		l.lastNumber = max(l.lastNumber, int(pr.Index))
	}
	return l, p.judge(err, q.Repo, "")
}

func (p *Provider) noBase(repo *gitea.Repository, q gitprovider.SnapshotQuery, cause error) error {
	switch {
	case repo.Empty:
		return fault.Wrap(cause, fault.NotFound, "the repository %s is empty; make a first commit on its base branch", q.Repo)
	case q.Base == "":
		return fault.Wrap(cause, fault.NotFound, "the default branch %s of %s does not exist; name an existing base branch",
			repo.DefaultBranch, q.Repo)
	}
	return fault.Wrap(cause, fault.NotFound, "the base branch %s does not exist in %s; name an existing one", q.Base, q.Repo)
}

// repository reads a repository. After a rename the server redirects, and the answer has the name of now.
func (p *Provider) repository(ctx context.Context, ref gitprovider.RepoRef) (*gitea.Repository, error) {
	repo, _, err := call(ctx, p, func(c *gitea.Client) (*gitea.Repository, *gitea.Response, error) {
		return c.GetRepo(ref.Owner, ref.Name)
	})
	if err == nil && repo.Name == "" {
		return nil, fault.New(fault.UpstreamError, "%s gave something else for the repository %s", p.base.Host, ref)
	}
	return repo, err
}

// fill is the second round.
func (p *Provider) fill(ctx context.Context, q gitprovider.SnapshotQuery, snap *gitprovider.Snapshot, l looked) error {
	ours := slices.DeleteFunc(slices.Concat(l.open, l.closed), func(pr *gitea.PullRequest) bool {
		return !gitprovider.MayBeOurs(pullRequest(pr, p.now()))
	})
	var prs []gitprovider.PullRequest
	err := together(
		func() (err error) {
			prs, err = p.withPaths(ctx, snap.Repo, ours)
			return err
		},
		func() (err error) {
			if q.Contents {
				snap.Contents, err = p.contents(ctx, snap.Repo, l.base, q.Paths)
			}
			return err
		},
		func() error {
			if q.Foreign {
				p.foreign(ctx, snap, l.open)
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
