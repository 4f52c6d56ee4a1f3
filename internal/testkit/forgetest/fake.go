// Package forgetest holds forges for tests, which keep state and fail as real ones do: Fake, a provider in memory, the
// servers fakegithub and fakegitea, memhost, the git host in memory behind them, and httpfault, which makes any server
// misbehave.
package forgetest

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// Fake is an in-memory gitprovider.Provider that behaves like a real host and passes the contract suite. Its Script
// counts calls and can make them fail, wait or let others act in between; its People, and its World, act as those
// around it do. It is safe for concurrent use.
type Fake struct {
	Script *Script
	People *People

	host     *memhost.Host // whose lock guards what follows
	name     string
	lateness time.Duration // what Lateness answers
}

// People change repositories as people and their forge do, beside the provider.
type People struct{ host *memhost.Host }

var (
	_ gitprovider.Provider     = (*Fake)(nil)
	_ gitprovider.Pinger       = (*Fake)(nil)
	_ gitprovider.Editor       = (*Fake)(nil)
	_ gitprovider.RemarkReader = (*Fake)(nil)
	_ gitprovider.Reviser      = (*Fake)(nil)
)

// NewFake makes a Fake without repositories. Its name is "fake", and its clock starts at 2026-01-01 and moves on by one
// second whenever it is read.
func NewFake() *Fake {
	host := memhost.New("https://fake.example")
	return &Fake{name: "fake", host: host, People: &People{host},
		Script: &Script{host: host, faults: map[string]*faults{}}}
}

// SetName changes what Name answers.
func (f *Fake) SetName(name string) { f.host.Locked(func() { f.name = name }) }

// SetClock replaces the clock, by which pull requests, reviews and merges are dated. It is read under the Fake's lock,
// so it must not call the Fake.
func (f *Fake) SetClock(now func() time.Time) { f.host.SetClock(now) }

// AddRepo makes a repository whose branch MainBranch has one commit with the files (content by path); with none, one
// without a commit.
func (f *Fake) AddRepo(owner, name string, files map[string]string) gitprovider.RepoRef {
	var list []providertest.File
	for path, content := range files {
		list = append(list, providertest.File{Path: path, Content: content})
	}
	return f.AddRepoFiles(owner, name, list...)
}

// AddRepoFiles is AddRepo for files of every kind.
func (f *Fake) AddRepoFiles(owner, name string, files ...providertest.File) gitprovider.RepoRef {
	return f.host.Add(owner, name, files...)
}

// Alter hands the flags of a repository to change: archived (read-only), fork, default branch.
func (p *People) Alter(ref gitprovider.RepoRef, archived, fork bool, defaultBranch string) {
	p.host.Locked(func() {
		repo := p.host.Repo(ref)
		repo.Archived, repo.Fork, repo.Default = archived, fork, defaultBranch
	})
}

// Rename gives a repository another owner and name. Its former name is not known any more.
func (p *People) Rename(ref gitprovider.RepoRef, owner, name string) gitprovider.RepoRef {
	return p.host.Rename(ref, owner, name)
}

// SetChecks sets the outcome of CI on a pull request.
func (p *People) SetChecks(ref gitprovider.RepoRef, number int, checks gitprovider.Checks) {
	p.host.Locked(func() { p.host.Repo(ref).PR(number).Checks = checks })
}

// Unlabel removes all labels of a pull request, as a person might.
func (p *People) Unlabel(ref gitprovider.RepoRef, number int) {
	p.host.Locked(func() { p.host.Repo(ref).PR(number).Labels = nil })
}

// PointBranch makes a branch that points to a commit, or moves it there.
func (p *People) PointBranch(ref gitprovider.RepoRef, branch, commit string) {
	p.host.Locked(func() { p.host.Repo(ref).Branches[branch] = commit })
}

// Amend replaces a branch by one commit on the default branch, with the message and the files, as a person may.
func (p *People) Amend(ref gitprovider.RepoRef, branch, message string, files ...providertest.File) (commit string) {
	p.host.Locked(func() {
		repo := p.host.Repo(ref)
		delete(repo.Branches, branch)
		commit = repo.Write(branch, message, files)
	})
	return commit
}

// repo finds a repository. The caller holds the host's lock.
func (f *Fake) repo(ref gitprovider.RepoRef) (*memhost.Repo, error) {
	if repo := f.host.Repo(ref); repo != nil {
		return repo, nil
	}
	return nil, fault.New(fault.NotFound, "there is no repository %s; check owner and name", ref)
}

// pullOf finds a pull request. The caller holds the host's lock.
func pullOf(f *Fake, ref gitprovider.RepoRef, number int) (*memhost.PR, error) {
	repo, err := f.repo(ref)
	if err != nil {
		return nil, err
	}
	if pr := repo.PR(number); pr != nil {
		return pr, nil
	}
	return nil, fault.New(fault.NotFound, "%s has no pull request #%d; check the number", ref, number)
}

// World gives the people's side of one of the Fake's repositories.
func (f *Fake) World(t testing.TB, ref gitprovider.RepoRef) providertest.World {
	return f.host.World(t, ref, f)
}

// FakeHarness runs the contract suite over a Fake of its own. The zero value is ready.
type FakeHarness struct{}

// NewRepo implements Harness.
func (FakeHarness) NewRepo(t testing.TB, files ...providertest.File) providertest.World {
	f := NewFake()
	return f.World(t, f.AddRepoFiles("demo", "home-cluster", files...))
}

// ManyPRs implements Harness.
func (FakeHarness) ManyPRs() int { return 120 }

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

// Details implements gitprovider.Editor. The Fake knows neither assignees nor requests for reviews.
func (f *Fake) Details(ctx context.Context, ref gitprovider.RepoRef, number int) (out gitprovider.Details, err error) {
	err = f.Script.call(ctx, MethodDetails, func() error {
		pr, err := pullOf(f, ref, number)
		if err != nil {
			return err
		}
		out.Labels = slices.Clone(pr.Labels)
		for _, review := range pr.Reviews {
			out.Reviewed = append(out.Reviewed, review.Author)
		}
		return nil
	})
	return out, err
}

// ReviewStates implements gitprovider.ReviewLister.
func (f *Fake) ReviewStates(ctx context.Context, ref gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	out := map[int]gitprovider.ReviewState{}
	err := f.Script.call(ctx, MethodReviewStates, func() error {
		if _, err := f.repo(ref); err != nil {
			return err
		}
		for _, number := range numbers {
			pr, err := pullOf(f, ref, number)
			if err != nil {
				continue
			}
			if state := gitprovider.StateOfReview(remarksOf(pr)); state != "" {
				out[number] = state
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
