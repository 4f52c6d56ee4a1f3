package local

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// pair is a base commit and a head commit.
type pair struct{ base, head string }

// comparison is the difference between a head and its base. It is valid for ever, since both are commits.
type comparison struct {
	contained bool     // the base contains the head: nothing to merge
	unrelated bool     // the two have no commit in common
	fork      string   // the commit where the two part; "" if contained or unrelated
	paths     []string // files that differ between fork and head, sorted; both names of renamed ones
}

// maxComparisons bounds the comparisons that are remembered.
const maxComparisons = 1024

// comparisons remembers comparisons by git directory and commits. It is safe for concurrent use.
type comparisons struct {
	mu   sync.Mutex
	done map[string]map[pair]comparison
	size int
}

func newComparisons() *comparisons { return &comparisons{done: map[string]map[pair]comparison{}} }

func (c *comparisons) get(gitDir string, k pair) (comparison, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.done[gitDir][k]
	return found, ok
}

func (c *comparisons) put(gitDir string, k pair, v comparison) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size++; c.size > maxComparisons {
		c.done, c.size = map[string]map[pair]comparison{}, 1
	}
	if c.done[gitDir] == nil {
		c.done[gitDir] = map[pair]comparison{}
	}
	c.done[gitDir][k] = v
}

// compare compares heads with their bases, in two processes for each distinct base whatever the number of heads.
func (repo *repository) compare(ctx context.Context, pairs []pair) (map[pair]comparison, error) {
	out := map[pair]comparison{}
	missing := map[string][]string{} // heads by base
	for _, k := range pairs {
		if known, ok := repo.comparisons.get(repo.gitDir, k); ok {
			out[k] = known
		} else if !slices.Contains(missing[k.base], k.head) {
			missing[k.base] = append(missing[k.base], k.head)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	w, err := repo.workspace(pairs[0].base, false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	for base, heads := range missing {
		found, err := w.compareHeads(ctx, base, heads)
		if err != nil {
			return nil, err
		}
		for head, c := range found {
			repo.comparisons.put(repo.gitDir, pair{base, head}, c)
			out[pair{base, head}] = c
		}
	}
	return out, nil
}

// compareHeads compares heads with one base.
func (w *workspace) compareHeads(ctx context.Context, base string, heads []string) (map[string]comparison, error) {
	parents, err := w.beyond(ctx, base, heads)
	if err != nil {
		return nil, err
	}
	out := map[string]comparison{}
	var ask strings.Builder
	for _, head := range heads {
		c, err := w.forkOf(ctx, base, head, parents)
		if err != nil {
			return nil, err
		}
		if c.fork != "" {
			ask.WriteString(head + " " + c.fork + "\n")
		}
		out[head] = c
	}
	changed, err := w.changedPaths(ctx, ask.String())
	if err != nil {
		return nil, err
	}
	for head, c := range out {
		if c.fork != "" {
			c.paths = changed[head]
		}
		out[head] = c
	}
	return out, nil
}

// beyond lists the commits that heads reach and base does not, with their parents.
func (w *workspace) beyond(ctx context.Context, base string, heads []string) (map[string][]string, error) {
	ask := "^" + base + "\n" + strings.Join(heads, "\n") + "\n"
	out, _, err := w.run(ctx, strings.NewReader(ask), nil, "rev-list", "--parents", "--stdin")
	if err != nil {
		return nil, err
	}
	parents := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if ids := strings.Fields(line); len(ids) > 0 {
			parents[ids[0]] = ids[1:]
		}
	}
	return parents, nil
}

// forkOf finds where a head parts from the base. Every commit that both contain is, or comes before, one of those at
// which the walk from the head enters the base; if it enters at one place only, that is the merge base.
func (w *workspace) forkOf(ctx context.Context, base, head string, parents map[string][]string) (comparison, error) {
	if _, beyond := parents[head]; !beyond {
		return comparison{contained: true}, nil
	}
	entries, seen := map[string]bool{}, map[string]bool{head: true}
	for todo := []string{head}; len(todo) > 0; {
		commit := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, parent := range parents[commit] {
			if _, beyond := parents[parent]; !beyond {
				entries[parent] = true
			} else if !seen[parent] {
				seen[parent] = true
				todo = append(todo, parent)
			}
		}
	}
	switch len(entries) {
	case 0:
		paths, err := w.allPaths(ctx, head)
		return comparison{unrelated: true, paths: paths}, err
	case 1:
		for fork := range entries {
			return comparison{fork: fork}, nil
		}
	}
	fork, err := w.id(ctx, nil, "merge-base", base, head)
	return comparison{fork: fork}, err
}

// allPaths lists every file of a commit, sorted.
func (w *workspace) allPaths(ctx context.Context, commit string) ([]string, error) {
	out, _, err := w.run(ctx, nil, nil, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	paths := splitZ(out)
	slices.Sort(paths)
	return paths, nil
}

// changedPaths runs one git diff-tree over lines of "<commit> <commit to compare with>", and gives the paths by commit.
// In the raw form a line that names a commit cannot be mistaken for a path: entries begin with a colon and carry theirs
// in a field of its own.
func (w *workspace) changedPaths(ctx context.Context, lines string) (map[string][]string, error) {
	if lines == "" {
		return nil, nil
	}
	out, _, err := w.run(ctx, strings.NewReader(lines), nil, "diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames")
	if err != nil {
		return nil, err
	}
	changed := map[string][]string{}
	commit := ""
	for fields := splitZ(out); len(fields) > 0; fields = fields[1:] {
		if !strings.HasPrefix(fields[0], ":") {
			commit = fields[0]
			continue
		}
		if len(fields) < 2 {
			return nil, fault.Wrap(errors.New("raw diff ends early"), fault.Internal, "git answered something else than a diff")
		}
		changed[commit] = append(changed[commit], fields[1])
		fields = fields[1:]
	}
	for _, paths := range changed {
		slices.Sort(paths)
	}
	return changed, nil
}

// splitZ splits NUL-terminated fields.
func splitZ(out []byte) []string {
	out = bytes.TrimSuffix(out, []byte{0})
	if len(out) == 0 {
		return nil
	}
	return strings.Split(string(out), "\x00")
}
