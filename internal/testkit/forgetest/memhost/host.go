// Package memhost is a git host in memory: repositories with commits, branches and pull requests, and the people around
// them. It speaks no protocol. The fakes of package providertest and below are doors to one: the plain Go one, the fake
// GitHub and the fake Gitea.
package memhost

import (
	"crypto/sha1" // #nosec G505: ids that look like git's
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
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

// MainBranch is the default branch of a repository, unless it is changed.
const MainBranch = providertest.MainBranch

// File is one file of a repository's tree.
type File = providertest.File

// Repo is a repository of a Host, for use inside of Host.Act or Host.Locked.
type Repo struct {
	ID       int // stays when it is renamed
	Ref      gitprovider.RepoRef
	Default  string // default branch
	Archived bool
	Fork     bool
	Branches map[string]string // commit by name
	Commits  map[string]*Commit
	PRs      []*PR // the number of a pull request is its index + 1
}

// Commit is a commit with its whole tree, by path.
type Commit struct {
	Parents []string
	Files   map[string]File
	Message string
	Time    time.Time // of the committer, where the maker of the commit sets one
}

// PR is a pull request with people's reviews and comments and CI's results. The branch of one from a fork has the form
// of ForkBranch.
type PR struct {
	gitprovider.PullRequest
	Reviews  []gitprovider.Review
	Comments []gitprovider.Remark
	Checks   gitprovider.Checks

	noticed [4]string // what Repo.Notice was about last: base, its tip, the head of the pull request and its branch's
}

// Stranger is a person who may not write to any repository that is not hers. Everybody else may.
const Stranger = "eve"

// ForkBranch returns the branch of a Repo that stands for a branch of somebody's fork. A colon is in no real name.
func ForkBranch(owner, branch string) string { return owner + ":" + branch }

// HeadOf splits the head of a pull request into the owner of its repository and the branch.
func (r *Repo) HeadOf(pr *PR) (owner, branch string) {
	if owner, branch, fork := strings.Cut(pr.Branch, ":"); fork {
		return owner, branch
	}
	return r.Ref.Owner, pr.Branch
}

// Shown returns a copy of a pull request of the repository, as the host shows it.
func (r *Repo) Shown(pr *PR) gitprovider.PullRequest {
	out := pr.Copy()
	out.Archived = r.Archived
	return out
}

// Copy returns a copy that the caller may keep and change.
func (pr *PR) Copy() gitprovider.PullRequest {
	out := pr.PullRequest
	out.Labels, out.Paths = slices.Clone(out.Labels), slices.Clone(out.Paths)
	return out
}

// NewRepo makes a repository without a commit; Host.Add puts it on a host.
func NewRepo(owner, name string) *Repo {
	return &Repo{
		Ref: gitprovider.RepoRef{Owner: owner, Name: name}, Default: MainBranch,
		Branches: map[string]string{}, Commits: map[string]*Commit{},
	}
}

// Add stores a commit. Equal commits have different ids, as they would at different times.
func (r *Repo) Add(c *Commit) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d %v", r.Ref, len(r.Commits), c)) // #nosec G401
	id := hex.EncodeToString(sum[:])
	r.Commits[id] = c
	return id
}

// Write adds a commit with the files to a branch, starting at the default branch.
func (r *Repo) Write(branch, message string, files []File) string {
	parent, exists := r.Branches[branch]
	if !exists {
		parent = r.Branches[r.Default]
	}
	c := &Commit{Files: map[string]File{}, Message: message}
	if parent != "" {
		c.Parents = []string{parent}
		maps.Copy(c.Files, r.Commits[parent].Files)
	}
	for _, f := range files {
		if f.Kind == "" {
			f.Kind = gitprovider.KindFile
		}
		c.Files[f.Path] = f
	}
	id := r.Add(c)
	r.Branches[branch] = id
	return id
}

// Notice does what a host does after a push: a pull request whose head is in its base is merged, one whose branch is
// gone is closed.
func (r *Repo) Notice(now time.Time) {
	for _, pr := range r.PRs {
		if pr.State != gitprovider.StateOpen {
			continue
		}
		tip, exists := r.Branches[pr.Branch]
		if about := [4]string{pr.Base, r.Branches[pr.Base], pr.HeadCommit, tip}; about == pr.noticed {
			continue
		}
		switch {
		case r.Contains(r.Branches[pr.Base], pr.HeadCommit):
			pr.State, pr.ClosedAt = gitprovider.StateMerged, now
		case !exists:
			pr.State, pr.ClosedAt = gitprovider.StateClosed, now
		default:
			pr.HeadCommit = tip
			pr.Paths = r.Changed(pr.Base, tip)
			pr.noticed = [4]string{pr.Base, r.Branches[pr.Base], tip, tip}
		}
	}
}

// reach gives the commits that id reaches, itself included.
func (r *Repo) reach(id string) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{id}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if c := r.Commits[id]; c != nil && !seen[id] {
			seen[id] = true
			todo = append(todo, c.Parents...)
		}
	}
	return seen
}

// Contains reports whether the history of in holds the commit id.
func (r *Repo) Contains(in, id string) bool { return r.reach(in)[id] }

// MergeBase finds the newest common commit: the one that reaches most others.
func (r *Repo) MergeBase(a, b string) string {
	inA, best, size := r.reach(a), "", 0
	for id := range r.reach(b) {
		if n := len(r.reach(id)); inA[id] && n > size {
			best, size = id, n
		}
	}
	return best
}

// Tree gives the files of a commit; none for "".
func (r *Repo) Tree(id string) map[string]File {
	if c := r.Commits[id]; c != nil {
		return c.Files
	}
	return nil
}

// Changed lists what a head changes against its base branch, sorted.
func (r *Repo) Changed(base, head string) []string {
	return differing(r.Tree(r.MergeBase(r.Branches[base], head)), r.Tree(head))
}

func differing(a, b map[string]File) []string {
	paths := map[string]bool{}
	for _, side := range []map[string]File{a, b} {
		for path := range side {
			if a[path] != b[path] {
				paths[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// Differing lists the files that differ between two commits, sorted; "" is a commit without files.
func (r *Repo) Differing(a, b string) []string { return differing(r.Tree(a), r.Tree(b)) }

// Merge merges file by file, and files line by line; ok is false if both sides changed the same lines.
func (r *Repo) Merge(base, head string) (merged map[string]File, ok bool) {
	was, ours, theirs := r.Tree(r.MergeBase(base, head)), r.Tree(base), r.Tree(head)
	merged = maps.Clone(ours)
	for _, path := range differing(was, theirs) {
		if ours[path] != was[path] && ours[path] != theirs[path] {
			both, ok := mergeFile(was[path], ours[path], theirs[path])
			if !ok {
				return nil, false
			}
			merged[path] = both
			continue
		}
		if f, exists := theirs[path]; exists {
			merged[path] = f
		} else {
			delete(merged, path)
		}
	}
	return merged, true
}

// mergeFile merges the texts of a file that both sides have changed.
func mergeFile(was, ours, theirs File) (File, bool) {
	text, ok := textedit.Merge(was.Content, ours.Content, theirs.Content)
	was.Content, ours.Content, theirs.Content = text, text, text
	return theirs, ok && was.Path != "" && ours == was && theirs == was
}

// Entries lists one folder of a commit; the root is "".
func (r *Repo) Entries(id, dir string, into gitprovider.Tree) {
	prefix := ""
	if dir != "" {
		prefix = dir + "/"
	}
	for path, f := range r.Tree(id) {
		rest, inside := strings.CutPrefix(path, prefix)
		if !inside {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		if deeper {
			into[prefix+name] = gitprovider.Entry{Kind: gitprovider.KindDir, ID: gitprovider.BlobID([]byte(prefix+name), id)}
			continue
		}
		into[path] = gitprovider.Entry{Kind: f.Kind, Executable: f.Executable, ID: gitprovider.BlobID([]byte(f.Content), id)}
	}
}

// Blob finds the content of a file of any commit by its object id.
func (r *Repo) Blob(id string) (content string, found bool) {
	for commit, c := range r.Commits {
		for _, f := range c.Files {
			if gitprovider.BlobID([]byte(f.Content), commit) == id {
				return f.Content, true
			}
		}
	}
	return "", false
}

// Read gives the folders above the paths, and the contents of the paths.
func (r *Repo) Read(id string, paths []gitprovider.Path) (gitprovider.Tree, map[gitprovider.Path][]byte) {
	tree, contents := gitprovider.Tree{}, map[gitprovider.Path][]byte{}
	r.Entries(id, "", tree)
	for _, p := range paths {
		for _, dir := range p.Ancestors() {
			r.Entries(id, dir, tree)
		}
		f, exists := r.Tree(id)[p.String()]
		if exists && f.Kind == gitprovider.KindFile && len(f.Content) <= gitprovider.MaxContentRead {
			contents[p] = []byte(f.Content)
		}
	}
	return tree, contents
}

// List copies pull requests, oldest first.
func (r *Repo) List(wanted func(*PR) bool) []gitprovider.PullRequest {
	var out []gitprovider.PullRequest
	for _, pr := range r.PRs {
		if wanted(pr) {
			out = append(out, r.Shown(pr))
		}
	}
	return out
}
