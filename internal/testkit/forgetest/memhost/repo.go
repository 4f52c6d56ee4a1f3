package memhost

import (
	"crypto/sha1" // #nosec G505: ids that look like git's
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

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
		switch {
		case r.Contains(r.Branches[pr.Base], pr.HeadCommit):
			pr.State, pr.ClosedAt = gitprovider.StateMerged, now
		case !exists:
			pr.State, pr.ClosedAt = gitprovider.StateClosed, now
		default:
			pr.HeadCommit = tip
			pr.Paths = r.Changed(pr.Base, tip)
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
