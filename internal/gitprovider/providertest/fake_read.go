package providertest

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Name implements gitprovider.Provider.
func (f *Fake) Name() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.name
}

// Snapshot implements gitprovider.Provider.
func (f *Fake) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (snap *gitprovider.Snapshot, err error) {
	err = f.call(ctx, MethodSnapshot, func() error {
		repo, err := f.repo(q.Repo)
		if err != nil {
			return err
		}
		base := q.Base
		if base == "" {
			base = repo.head
		}
		tip := repo.branches[base]
		if tip == "" {
			return fault.New(fault.NotFound, "the repository %s is empty or has no branch %s; name an existing base branch",
				repo.ref, base)
		}
		ref := repo.ref
		ref.Remote = q.Repo.Remote
		snap = &gitprovider.Snapshot{
			Repo: ref, URL: "https://fake.example/" + ref.String(), DefaultBranch: repo.head, Base: base, BaseCommit: tip,
			Archived: repo.archived, Fork: repo.fork, Tips: map[string]string{},
		}
		for _, branch := range q.Branches {
			if at, exists := repo.branches[branch]; exists {
				snap.Tips[branch] = at
			}
		}
		snap.Tree, snap.Contents = repo.read(tip, q.Paths)
		snap.Open = repo.list(func(pr *hostPR) bool { return isOurs(pr) && pr.State == gitprovider.StateOpen })
		if !q.ClosedSince.IsZero() {
			snap.Closed = repo.list(func(pr *hostPR) bool {
				return isOurs(pr) && pr.State == gitprovider.StateClosed && !pr.ClosedAt.Before(q.ClosedSince)
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return snap, nil
}

// read gives the folders above the paths, and the contents of the paths.
func (r *hostRepo) read(id string, paths []gitprovider.Path) (gitprovider.Tree, map[gitprovider.Path][]byte) {
	tree, contents := gitprovider.Tree{}, map[gitprovider.Path][]byte{}
	r.entries(id, "", tree)
	for _, p := range paths {
		for _, dir := range p.Ancestors() {
			r.entries(id, dir, tree)
		}
		f, exists := r.tree(id)[p.String()]
		if exists && f.Kind == gitprovider.KindFile && len(f.Content) <= gitprovider.MaxContentRead {
			contents[p] = []byte(f.Content)
		}
	}
	return tree, contents
}

// list copies pull requests, oldest first.
func (r *hostRepo) list(wanted func(*hostPR) bool) []gitprovider.PullRequest {
	var out []gitprovider.PullRequest
	for _, pr := range r.prs {
		if wanted(pr) {
			out = append(out, pr.copy())
		}
	}
	return out
}

func isOurs(pr *hostPR) bool {
	return gitprovider.MayBeOurs(pr.PullRequest)
}

// FindByHead implements gitprovider.Provider.
func (f *Fake) FindByHead(ctx context.Context, ref gitprovider.RepoRef, branch string) (found *gitprovider.PullRequest,
	err error) {
	err = f.call(ctx, MethodFindByHead, func() error {
		repo, err := f.repo(ref)
		if err != nil {
			return err
		}
		for _, pr := range slices.Backward(repo.prs) {
			if pr.Branch == branch {
				c := pr.copy()
				found = &c
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// BranchTip implements gitprovider.Provider.
func (f *Fake) BranchTip(ctx context.Context, ref gitprovider.RepoRef, branch string) (tip string, err error) {
	err = f.call(ctx, MethodBranchTip, func() error {
		repo, err := f.repo(ref)
		if err == nil {
			tip = repo.branches[branch]
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return tip, nil
}

// ListOpen implements gitprovider.Provider.
func (f *Fake) ListOpen(ctx context.Context, ref gitprovider.RepoRef, label string) (prs []gitprovider.PullRequest,
	err error) {
	err = f.call(ctx, MethodListOpen, func() error {
		repo, err := f.repo(ref)
		if err == nil {
			prs = repo.list(func(pr *hostPR) bool {
				return pr.State == gitprovider.StateOpen && slices.Contains(pr.Labels, label)
			})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return prs, nil
}

// Status implements gitprovider.Provider.
func (f *Fake) Status(ctx context.Context, ref gitprovider.RepoRef, number int) (status gitprovider.Status, err error) {
	err = f.call(ctx, MethodStatus, func() error {
		pr, err := f.pr(ref, number)
		if err != nil {
			return err
		}
		status = gitprovider.Status{PullRequest: pr.copy(), Reviews: slices.Clone(pr.reviews), Checks: pr.checks}
		if pr.State == gitprovider.StateOpen {
			repo := f.repos[repoKey(ref)]
			_, ok := repo.merge(repo.branches[pr.Base], pr.HeadCommit)
			status.Mergeable = &ok
		}
		return nil
	})
	if err != nil {
		return gitprovider.Status{}, err
	}
	return status, nil
}
