package forgetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// Fake is an in-memory gitprovider.Provider that behaves like a real host and passes the contract suite. It counts
// calls and can be told to fail, wait or let others act in between; see FailBefore, FailAfter, Before, After and Block.
// Use World to act as the people around it. It is safe for concurrent use.
type Fake struct {
	host *memhost.Host

	mu     sync.Mutex // guards what follows
	name   string
	calls  []string
	faults map[string]*faults
	// lateness is what Lateness answers.
	lateness time.Duration
}

var (
	_ gitprovider.Provider     = (*Fake)(nil)
	_ gitprovider.Pinger       = (*Fake)(nil)
	_ gitprovider.Editor       = (*Fake)(nil)
	_ gitprovider.RemarkReader = (*Fake)(nil)
)

// NewFake makes a Fake without repositories. Its name is "fake", and its clock starts at 2026-01-01 and moves on by one
// second whenever it is read.
func NewFake() *Fake {
	return &Fake{name: "fake", host: memhost.New("https://fake.example"), faults: map[string]*faults{}}
}

// SetName changes what Name answers.
func (f *Fake) SetName(name string) { f.locked(func() { f.name = name }) }

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
func (f *Fake) Alter(ref gitprovider.RepoRef, archived, fork bool, defaultBranch string) {
	f.host.Locked(func() {
		repo := f.host.Repo(ref)
		repo.Archived, repo.Fork, repo.Default = archived, fork, defaultBranch
	})
}

// SetChecks sets the outcome of CI on a pull request.
func (f *Fake) SetChecks(ref gitprovider.RepoRef, number int, checks gitprovider.Checks) {
	f.host.Locked(func() { f.host.Repo(ref).PR(number).Checks = checks })
}

// Unlabel removes all labels of a pull request, as a person might.
func (f *Fake) Unlabel(ref gitprovider.RepoRef, number int) {
	f.host.Locked(func() { f.host.Repo(ref).PR(number).Labels = nil })
}

// PointBranch makes a branch that points to a commit, or moves it there.
func (f *Fake) PointBranch(ref gitprovider.RepoRef, branch, commit string) {
	f.host.Locked(func() { f.host.Repo(ref).Branches[branch] = commit })
}

// Amend replaces a branch by one commit on the default branch, with the message and the files, as a person may.
func (f *Fake) Amend(ref gitprovider.RepoRef, branch, message string, files ...providertest.File) (commit string) {
	f.host.Locked(func() {
		repo := f.host.Repo(ref)
		delete(repo.Branches, branch)
		commit = repo.Write(branch, message, files)
	})
	return commit
}

// Calls returns the names of the methods that were called, in order, whatever came of them.
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Count is how often a method was called.
func (f *Fake) Count(method string) int {
	n := 0
	for _, call := range f.Calls() {
		if call == method {
			n++
		}
	}
	return n
}

// Writes is how many calls there were of methods that write: Commit, OpenPullRequest, Label, DeleteBranch, SetBody, Withdraw.
func (f *Fake) Writes() int {
	return f.Count(MethodCommit) + f.Count(MethodOpenPullRequest) + f.Count(MethodLabel) + f.Count(MethodDeleteBranch) +
		f.Count(MethodSetBody) + f.Count(MethodWithdraw)
}

// Reads is how many calls there were of methods that only read.
func (f *Fake) Reads() int { return len(f.Calls()) - f.Writes() }

// ForgetCalls sets all counts to zero.
func (f *Fake) ForgetCalls() { f.locked(func() { f.calls = nil }) }

func (f *Fake) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// repo finds a repository. The caller holds the host's lock.
func (f *Fake) repo(ref gitprovider.RepoRef) (*memhost.Repo, error) {
	if repo := f.host.Repo(ref); repo != nil {
		return repo, nil
	}
	return nil, fault.New(fault.NotFound, "there is no repository %s; check owner and name", ref)
}

// pr finds a pull request. The caller holds the host's lock.
func (f *Fake) pr(ref gitprovider.RepoRef, number int) (*memhost.PR, error) {
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
