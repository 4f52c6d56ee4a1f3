package providertest

import (
	"crypto/sha1" // #nosec G505: ids that look like git's
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// hostRepo is a repository of the in-memory host. Its user holds the lock.
type hostRepo struct {
	ref      gitprovider.RepoRef
	head     string // default branch
	archived bool
	fork     bool
	branches map[string]string
	commits  map[string]*hostCommit
	prs      []*hostPR // number is index + 1
}

type hostCommit struct {
	parents []string
	files   map[string]File
	message string
}

type hostPR struct {
	gitprovider.PullRequest
	reviews []gitprovider.Review
	checks  gitprovider.Checks
}

func newHostRepo(owner, name string) *hostRepo {
	return &hostRepo{
		ref: gitprovider.RepoRef{Owner: owner, Name: name}, head: MainBranch,
		branches: map[string]string{}, commits: map[string]*hostCommit{},
	}
}

// add stores a commit. Equal commits have different ids, as they would at different times.
func (r *hostRepo) add(c *hostCommit) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d %v", r.ref, len(r.commits), c)) // #nosec G401
	id := hex.EncodeToString(sum[:])
	r.commits[id] = c
	return id
}

// write adds a commit with the files to a branch, starting at the default branch.
func (r *hostRepo) write(branch, message string, files []File) string {
	parent, exists := r.branches[branch]
	if !exists {
		parent = r.branches[r.head]
	}
	c := &hostCommit{files: map[string]File{}, message: message}
	if parent != "" {
		c.parents = []string{parent}
		maps.Copy(c.files, r.commits[parent].files)
	}
	for _, f := range files {
		if f.Kind == "" {
			f.Kind = gitprovider.KindFile
		}
		c.files[f.Path] = f
	}
	id := r.add(c)
	r.branches[branch] = id
	return id
}

// notice does what a host does after a push: a pull request whose head is in its base is merged, one whose branch is
// gone is closed.
func (r *hostRepo) notice(now time.Time) {
	for _, pr := range r.prs {
		if pr.State != gitprovider.StateOpen {
			continue
		}
		tip, exists := r.branches[pr.Branch]
		switch {
		case r.contains(r.branches[pr.Base], pr.HeadCommit):
			pr.State, pr.ClosedAt = gitprovider.StateMerged, now
		case !exists:
			pr.State, pr.ClosedAt = gitprovider.StateClosed, now
		default:
			pr.HeadCommit = tip
			pr.Paths = r.changed(pr.Base, tip)
		}
	}
}

// reach gives the commits that id reaches, itself included.
func (r *hostRepo) reach(id string) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{id}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if c := r.commits[id]; c != nil && !seen[id] {
			seen[id] = true
			todo = append(todo, c.parents...)
		}
	}
	return seen
}

func (r *hostRepo) contains(in, id string) bool { return r.reach(in)[id] }

// mergeBase finds the newest common commit: the one that reaches most others.
func (r *hostRepo) mergeBase(a, b string) string {
	inA, best, size := r.reach(a), "", 0
	for id := range r.reach(b) {
		if n := len(r.reach(id)); inA[id] && n > size {
			best, size = id, n
		}
	}
	return best
}

// tree gives the files of a commit; none for "".
func (r *hostRepo) tree(id string) map[string]File {
	if c := r.commits[id]; c != nil {
		return c.files
	}
	return nil
}

// changed lists what a head changes against its base branch, sorted.
func (r *hostRepo) changed(base, head string) []string {
	return differing(r.tree(r.mergeBase(r.branches[base], head)), r.tree(head))
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

// merge merges file by file; ok is false if both sides changed one in different ways.
func (r *hostRepo) merge(base, head string) (merged map[string]File, ok bool) {
	was, ours, theirs := r.tree(r.mergeBase(base, head)), r.tree(base), r.tree(head)
	merged = maps.Clone(ours)
	for _, path := range differing(was, theirs) {
		if ours[path] != was[path] && ours[path] != theirs[path] {
			return nil, false
		}
		if f, exists := theirs[path]; exists {
			merged[path] = f
		} else {
			delete(merged, path)
		}
	}
	return merged, true
}

// entries lists one folder of a commit; the root is "".
func (r *hostRepo) entries(id, dir string, into gitprovider.Tree) {
	prefix := ""
	if dir != "" {
		prefix = dir + "/"
	}
	for path, f := range r.tree(id) {
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
