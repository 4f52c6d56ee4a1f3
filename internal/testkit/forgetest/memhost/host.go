// Package memhost is a git host in memory: repositories with commits, branches and pull requests, and the people around
// them. It speaks no protocol. The fakes of package providertest and below are doors to one: the plain Go one, the fake
// GitHub and the fake Gitea.
package memhost

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Host is a git host. It is safe for concurrent use.
type Host struct {
	mu    sync.Mutex
	now   func() time.Time
	web   string
	repos map[string]*Repo // by lower-case owner/name
	made  int              // how many there were
}

// New makes a host without repositories. web is the address below which its pages are, without a slash at its end. Its
// clock starts at 2026-01-01 and moves on by one second whenever it is read.
func New(web string) *Host {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &Host{
		web: web, repos: map[string]*Repo{},
		now: func() time.Time { clock = clock.Add(time.Second); return clock },
	}
}

// SetClock replaces the clock, by which pull requests, reviews and merges are dated. It is read under the host's lock,
// so it must not call the host.
func (h *Host) SetClock(now func() time.Time) { h.Locked(func() { h.now = now }) }

// Locked runs do under the lock of the host. do must not call the methods that say they take the lock.
func (h *Host) Locked(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// Now reads the clock. The caller holds the lock.
func (h *Host) Now() time.Time { return h.now() }

// Web returns the address below which the host's pages are.
func (h *Host) Web() string { return h.web }

// Repo finds a repository, letter case aside, or nil. The caller holds the lock.
func (h *Host) Repo(ref gitprovider.RepoRef) *Repo { return h.repos[key(ref)] }

// Add makes a repository whose branch MainBranch has one commit with the files; with none, one without a commit. It
// takes the lock.
func (h *Host) Add(owner, name string, files ...File) gitprovider.RepoRef {
	repo := NewRepo(owner, name)
	if len(files) > 0 {
		repo.Write(MainBranch, "first commit", files)
	}
	h.Locked(func() {
		h.made++
		repo.ID = h.made
		h.repos[key(repo.Ref)] = repo
	})
	return repo.Ref
}

// Rename gives a repository another owner and name, as a transfer does. Whether the former name leads to it is up to
// the doors. It takes the lock.
func (h *Host) Rename(ref gitprovider.RepoRef, owner, name string) gitprovider.RepoRef {
	to := gitprovider.RepoRef{Owner: owner, Name: name}
	h.Locked(func() {
		repo := h.Repo(ref)
		delete(h.repos, key(ref))
		repo.Ref = to
		h.repos[key(to)] = repo
	})
	return to
}

// Act takes the lock, runs do on a repository, and lets the host notice what it changed. It fails if there is none.
func (h *Host) Act(ref gitprovider.RepoRef, do func(*Repo) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	repo := h.Repo(ref)
	if repo == nil {
		return fmt.Errorf("there is no repository %s", ref)
	}
	defer func() { repo.Notice(h.now()) }()
	return do(repo)
}

// Open adds a pull request, whatever there is already. Head and base must exist. One from a fork has its owner as its
// author, the others have none. The caller holds the lock.
func (h *Host) Open(repo *Repo, spec gitprovider.PullRequestSpec) *PR {
	head := repo.Branches[spec.Head]
	pr := &PR{Checks: gitprovider.Checks{State: gitprovider.ChecksNone}}
	number := len(repo.PRs) + 1
	pr.PullRequest = gitprovider.PullRequest{
		Number: number, Title: spec.Title, Body: spec.Body, Branch: spec.Head, HeadCommit: head, Base: spec.Base,
		URL:   fmt.Sprintf("%s/%s/pulls/%d", h.web, repo.Ref, number),
		State: gitprovider.StateOpen, CreatedAt: h.now(), Paths: repo.Changed(spec.Base, head), RepoID: strconv.Itoa(repo.ID),
	}
	pr.Author, _, pr.Fork = strings.Cut(spec.Head, ":")
	if !pr.Fork {
		pr.Author = ""
	}
	pr.AddLabels(spec.Labels...)
	repo.PRs = append(repo.PRs, pr)
	return pr
}

// AddLabels adds the labels that are missing.
func (pr *PR) AddLabels(labels ...string) {
	for _, label := range labels {
		if !slices.Contains(pr.Labels, label) {
			pr.Labels = append(pr.Labels, label)
		}
	}
}

// PR finds a pull request by number, or nil.
func (r *Repo) PR(number int) *PR {
	if number < 1 || number > len(r.PRs) {
		return nil
	}
	return r.PRs[number-1]
}

func key(ref gitprovider.RepoRef) string { return strings.ToLower(ref.String()) }
