package providertest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Fake is an in-memory gitprovider.Provider that behaves like a real host and passes the contract suite. It counts
// calls and can be told to fail, wait or let others act in between; see FailBefore, FailAfter, Before, After and Block.
// Use World to act as the people around it. It is safe for concurrent use.
type Fake struct {
	mu     sync.Mutex
	name   string
	now    func() time.Time
	repos  map[string]*hostRepo // by lower-case owner/name
	calls  []string
	faults map[string]*faults
}

var _ gitprovider.Provider = (*Fake)(nil)

// NewFake makes a Fake without repositories. Its name is "fake", and its clock starts at 2026-01-01 and moves on by one
// second whenever it is read.
func NewFake() *Fake {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &Fake{
		name: "fake", repos: map[string]*hostRepo{}, faults: map[string]*faults{},
		now: func() time.Time { clock = clock.Add(time.Second); return clock },
	}
}

// SetName changes what Name answers.
func (f *Fake) SetName(name string) { f.locked(func() { f.name = name }) }

// SetClock replaces the clock, by which pull requests, reviews and merges are dated. It is read under the Fake's lock,
// so it must not call the Fake.
func (f *Fake) SetClock(now func() time.Time) { f.locked(func() { f.now = now }) }

// AddRepo makes a repository whose branch MainBranch has one commit with the files (content by path); with none, one
// without a commit.
func (f *Fake) AddRepo(owner, name string, files map[string]string) gitprovider.RepoRef {
	var list []File
	for path, content := range files {
		list = append(list, File{Path: path, Content: content})
	}
	return f.AddRepoFiles(owner, name, list...)
}

// AddRepoFiles is AddRepo for files of every kind.
func (f *Fake) AddRepoFiles(owner, name string, files ...File) gitprovider.RepoRef {
	repo := newHostRepo(owner, name)
	if len(files) > 0 {
		repo.write(MainBranch, "first commit", files)
	}
	f.locked(func() { f.repos[repoKey(repo.ref)] = repo })
	return repo.ref
}

// Alter hands the flags of a repository to change: archived (read-only), fork, default branch.
func (f *Fake) Alter(ref gitprovider.RepoRef, archived, fork bool, defaultBranch string) {
	f.locked(func() {
		repo := f.repos[repoKey(ref)]
		repo.archived, repo.fork, repo.head = archived, fork, defaultBranch
	})
}

// SetChecks sets the outcome of CI on a pull request.
func (f *Fake) SetChecks(ref gitprovider.RepoRef, number int, checks gitprovider.Checks) {
	f.locked(func() { f.repos[repoKey(ref)].prs[number-1].checks = checks })
}

// Unlabel removes all labels of a pull request, as a person might.
func (f *Fake) Unlabel(ref gitprovider.RepoRef, number int) {
	f.locked(func() { f.repos[repoKey(ref)].prs[number-1].Labels = nil })
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

// Writes is how many calls there were of methods that write: Commit, OpenPullRequest, Label, DeleteBranch.
func (f *Fake) Writes() int {
	return f.Count(MethodCommit) + f.Count(MethodOpenPullRequest) + f.Count(MethodLabel) + f.Count(MethodDeleteBranch)
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

func repoKey(ref gitprovider.RepoRef) string { return strings.ToLower(ref.String()) }

// repo finds a repository. The caller holds the lock.
func (f *Fake) repo(ref gitprovider.RepoRef) (*hostRepo, error) {
	if repo := f.repos[repoKey(ref)]; repo != nil {
		return repo, nil
	}
	return nil, fault.New(fault.NotFound, "there is no repository %s; check owner and name", ref)
}

// pr finds a pull request. The caller holds the lock.
func (f *Fake) pr(ref gitprovider.RepoRef, number int) (*hostPR, error) {
	repo, err := f.repo(ref)
	if err != nil {
		return nil, err
	}
	if number < 1 || number > len(repo.prs) {
		return nil, fault.New(fault.NotFound, "%s has no pull request #%d; check the number", ref, number)
	}
	return repo.prs[number-1], nil
}

// copy is a copy that the caller may keep and change.
func (pr *hostPR) copy() gitprovider.PullRequest {
	out := pr.PullRequest
	out.Labels, out.Paths = slices.Clone(out.Labels), slices.Clone(out.Paths)
	return out
}
