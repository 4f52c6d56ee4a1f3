package forgetest

import (
	"context"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// Name implements gitprovider.Provider.
func (f *Fake) Name() (name string) {
	f.host.Locked(func() { name = f.name })
	return name
}

// Snapshot implements gitprovider.Provider.
func (f *Fake) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (snap *gitprovider.Snapshot, err error) {
	err = f.Script.call(ctx, MethodSnapshot, func() error {
		repo, err := f.repo(q.Repo)
		if err != nil {
			return err
		}
		base := q.Base
		if base == "" {
			base = repo.Default
		}
		tip := repo.Branches[base]
		if tip == "" {
			if q.Base == "" {
				return fault.New(fault.NotFound, "the repository %s is empty", repo.Ref)
			}
			return gitprovider.NoBase(repo.Ref, base, repo.Default)
		}
		ref := repo.Ref
		ref.Remote = q.Repo.Remote
		snap = &gitprovider.Snapshot{
			Repo: ref, RepoID: strconv.Itoa(repo.ID), URL: "https://fake.example/" + ref.String(), DefaultBranch: repo.Default,
			Base: base, BaseCommit: tip,
			Archived: repo.Archived, Fork: repo.Fork, Tips: map[string]string{}, LastNumber: lastNumber(repo),
		}
		for _, branch := range q.Branches {
			if at, exists := repo.Branches[branch]; exists {
				snap.Tips[branch] = at
			}
		}
		snap.Tree, snap.Contents = repo.Read(tip, q.Paths)
		if !q.Contents {
			snap.Contents = nil
		}
		if q.FilesOnly {
			return nil
		}
		snap.Open = repo.List(func(pr *memhost.PR) bool { return isOurs(pr) && pr.State == gitprovider.StateOpen })
		if q.Foreign {
			snap.Foreign = repo.List(func(pr *memhost.PR) bool {
				return !isOurs(pr) && pr.State == gitprovider.StateOpen && pr.Base == base
			})
			snap.ForeignUnread = max(0, len(snap.Foreign)-gitprovider.MaxForeign)
			snap.Foreign = snap.Foreign[snap.ForeignUnread:]
		}
		if !q.ClosedSince.IsZero() {
			snap.Closed = repo.List(func(pr *memhost.PR) bool {
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

func isOurs(pr *memhost.PR) bool {
	return gitprovider.MayBeOurs(pr.PullRequest)
}

// FindByHead implements gitprovider.Provider.
func (f *Fake) FindByHead(ctx context.Context, ref gitprovider.RepoRef, branch string) (found *gitprovider.PullRequest,
	err error) {
	err = f.Script.call(ctx, MethodFindByHead, func() error {
		repo, err := f.repo(ref)
		if err != nil {
			return err
		}
		for _, pr := range slices.Backward(repo.PRs) {
			if pr.Branch == branch {
				c := pr.Copy()
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
	err = f.Script.call(ctx, MethodBranchTip, func() error {
		repo, err := f.repo(ref)
		if err == nil {
			tip = repo.Branches[branch]
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
	err = f.Script.call(ctx, MethodListOpen, func() error {
		repo, err := f.repo(ref)
		if err == nil {
			prs = repo.List(func(pr *memhost.PR) bool {
				return pr.State == gitprovider.StateOpen && gitprovider.Listed(pr.PullRequest, label)
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
	err = f.Script.call(ctx, MethodStatus, func() error {
		pr, err := pullOf(f, ref, number)
		if err != nil {
			return err
		}
		repo, err := f.repo(ref)
		if err != nil {
			return err
		}
		status = gitprovider.Status{PullRequest: repo.Shown(pr), Checks: pr.Checks,
			Reviews: gitprovider.AndConversation(withAllIDs(pr.Reviews), pr.Comments)}
		if pr.State == gitprovider.StateOpen {
			repo := f.host.Repo(ref)
			_, ok := repo.Merge(repo.Branches[pr.Base], pr.HeadCommit)
			status.Mergeable = &ok
		}
		return nil
	})
	if err != nil {
		return gitprovider.Status{}, err
	}
	return status, nil
}

// Ping implements gitprovider.Pinger.
func (f *Fake) Ping(ctx context.Context) error {
	return f.Script.call(ctx, MethodPing, func() error { return nil })
}
