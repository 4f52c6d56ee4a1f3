package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Records keeps what a forge would keep beside a git repository: pull requests and their reviews.
// internal/records/store implements it. repo is "owner/name" as the folder below the root is spelled. Errors are
// *fault.Error: not_found for an unknown number, internal when the store fails; an error that a callback returns is
// passed on as it is.
type Records interface {
	// InsertPR records a new open pull request under the repository's next number, starting at 1. If an open one with
	// the same head branch and base exists, that one is returned and nothing is recorded.
	InsertPR(ctx context.Context, repo string, pr gitprovider.PullRequest) (gitprovider.PullRequest, error)
	// PR returns one pull request and its reviews, oldest first.
	PR(ctx context.Context, repo string, number int) (gitprovider.PullRequest, []gitprovider.Review, error)
	// PRs returns every pull request of the repository in the given state ("" for all), oldest first.
	PRs(ctx context.Context, repo string, state gitprovider.State) ([]gitprovider.PullRequest, error)
	// UpdatePR hands the recorded pull request to change within one transaction and records what it left there. If
	// change fails, nothing is recorded.
	UpdatePR(ctx context.Context, repo string, number int, change func(*gitprovider.PullRequest) error) error
	// AddReview appends a review to a pull request.
	AddReview(ctx context.Context, repo string, number int, review gitprovider.Review) error
}

// pulls keeps the records of pull requests in step with the repositories.
type pulls struct {
	records Records
	now     func() time.Time
}

// pullsNow are a repository's branches, and its open pull requests as they show them: head, paths and URL as of now.
type pullsNow struct {
	branches branches
	open     []gitprovider.PullRequest // oldest first
}

// refresh reads the open pull requests and compares them with the repository. What people did with plain git is
// recorded: a pull request whose head is in the base was merged, one whose branch is gone was closed. Records are read
// before branches, so that a pull request that is opened meanwhile does not look like one whose branch is gone.
func (p *pulls) refresh(ctx context.Context, repo *repository) (pullsNow, error) {
	recorded, err := p.records.PRs(ctx, repo.recordKey(), gitprovider.StateOpen)
	if err != nil {
		return pullsNow{}, err
	}
	seen := pullsNow{}
	if seen.branches, err = repo.branches(ctx); err != nil || len(recorded) == 0 {
		return seen, err
	}
	compared, err := repo.compareHeads(ctx, pairsOf(recorded, seen.branches))
	if err != nil && ctx.Err() == nil {
		compared, err = repo.compareSound(ctx, pairsOf(recorded, seen.branches), err)
	}
	if err != nil {
		return seen, err
	}
	for _, pr := range recorded {
		state, err := repo.stateOf(ctx, pr, seen.branches, compared)
		if err != nil {
			return seen, err
		}
		if state == gitprovider.StateOpen {
			seen.open = append(seen.open, asOfNow(repo, pr, seen.branches, compared))
		} else if err := p.markEnded(ctx, repo, pr.Number, state); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// compareSound compares the pairs of which the repository has both commits, after cause has ended the
// comparison of all:
// one damaged branch keeps nobody from the other pull requests. The error is cause if none is damaged.
func (repo *repository) compareSound(ctx context.Context, pairs []pair, cause error) (map[pair]comparison, error) {
	var sound []pair
	for _, k := range pairs {
		if repo.checkHead(ctx, "", k.base) == nil && repo.checkHead(ctx, "", k.head) == nil {
			sound = append(sound, k)
		}
	}
	if len(sound) == len(pairs) {
		return nil, cause
	}
	return repo.compareHeads(ctx, sound)
}

// checkHead refuses a commit that the repository does not have, or cannot read. branch is what points to it.
func (repo *repository) checkHead(ctx context.Context, branch, commit string) error {
	w, err := repo.workspace(commit, false)
	if err != nil {
		return err
	}
	defer w.close()
	if _, code, err := w.runGit(ctx, nil, []int{1, 128}, "cat-file", "-e", commit+"^{tree}"); err != nil || code == 0 {
		return err
	}
	return fault.New(fault.UpstreamError, "the branch %s is at the commit %.12s, which the repository %s lacks or cannot "+
		"read; have the operator restore it, or remove the branch, which closes the pull request", branch, commit, repo.ref)
}

// markEnded records how a pull request ended, unless somebody else did.
func (p *pulls) markEnded(ctx context.Context, repo *repository, number int, state gitprovider.State) error {
	return p.updatePull(ctx, repo, number, func(pr *gitprovider.PullRequest) error {
		if pr.State == gitprovider.StateOpen {
			pr.State, pr.ClosedAt = state, p.now().UTC()
		}
		return nil
	})
}

func (p *pulls) updatePull(ctx context.Context, repo *repository, number int,
	change func(*gitprovider.PullRequest) error) error {
	return p.records.UpdatePR(ctx, repo.recordKey(), number, change)
}

// pullStatus returns a pull request with its reviews. There is no CI, so the checks are always ChecksNone. Whether an
// open pull request can be merged is computed at once, never nil.
func (p *pulls) pullStatus(ctx context.Context, repo *repository, number int, seen pullsNow) (gitprovider.Status,
	error) {
	pr, reviews, err := p.records.PR(ctx, repo.recordKey(), number)
	if err != nil {
		return gitprovider.Status{}, err
	}
	status := gitprovider.Status{
		PullRequest: seen.current(repo, pr), Reviews: withIDs(reviews),
		Checks: gitprovider.Checks{State: gitprovider.ChecksNone},
	}
	if status.State != gitprovider.StateOpen {
		return status, nil
	}
	k := pair{seen.branches.tips[pr.Base], seen.branches.tips[pr.Branch]}
	mergeable, err := repo.mergeable(ctx, k)
	status.Mergeable = &mergeable
	return status, repo.explainFailure(ctx, pr, k, err)
}

// explainFailure is a failure about a pull request that says which of its branches is damaged, if one is.
func (repo *repository) explainFailure(ctx context.Context, pr gitprovider.PullRequest, k pair, failure error) error {
	if failure == nil || fault.CodeOf(failure) == fault.Conflict || ctx.Err() != nil {
		return failure
	}
	for _, at := range []struct{ branch, commit string }{{pr.Branch, k.head}, {pr.Base, k.base}} {
		if err := repo.checkHead(ctx, at.branch, at.commit); at.commit != "" && err != nil {
			return fault.Wrap(failure, fault.UpstreamError, "pull request #%d: %s", pr.Number, fault.From(err).Message)
		}
	}
	return failure
}

// closedSince lists what was closed without merging. Its paths are those at the time.
func (p *pulls) closedSince(ctx context.Context, repo *repository, since time.Time) ([]gitprovider.PullRequest, error) {
	if since.IsZero() {
		return nil, nil
	}
	closed, err := p.records.PRs(ctx, repo.recordKey(), gitprovider.StateClosed)
	closed = slices.DeleteFunc(closed, func(pr gitprovider.PullRequest) bool {
		return notOurs(pr) || pr.ClosedAt.Before(since)
	})
	for i := range closed {
		closed[i].URL = repo.prURL(closed[i].Number)
	}
	return closed, err
}

func notOurs(pr gitprovider.PullRequest) bool { return !gitprovider.MayBeOurs(pr) }

// addReview records what a person said.
func (p *pulls) addReview(ctx context.Context, repo *repository, number int, state gitprovider.ReviewState,
	n Note) error {
	return p.records.AddReview(ctx, repo.recordKey(), number, gitprovider.Review{
		Author: n.Who, Account: n.Account, State: state, Body: n.Body, SubmittedAt: p.now().UTC(), Comments: n.Comments,
	})
}

// current returns a pull request from the records as it is now.
func (s pullsNow) current(repo *repository, recorded gitprovider.PullRequest) gitprovider.PullRequest {
	for _, pr := range s.open {
		if pr.Number == recorded.Number && recorded.State == gitprovider.StateOpen {
			return pr
		}
	}
	recorded.URL = repo.prURL(recorded.Number)
	return recorded
}

// asOfNow fills in what is read from git. A head or base that is gone leaves what was recorded.
func asOfNow(repo *repository, pr gitprovider.PullRequest, have branches,
	compared map[pair]comparison) gitprovider.PullRequest {
	pr.URL = repo.prURL(pr.Number)
	if tip := have.tips[pr.Branch]; tip != "" && pr.State == gitprovider.StateOpen {
		pr.HeadCommit = tip
		if c, done := compared[pair{have.tips[pr.Base], tip}]; done {
			pr.Paths = slices.Clone(c.paths)
		}
	}
	return pr
}

// pairsOf lists what has to be compared: the heads and bases that exist.
func pairsOf(prs []gitprovider.PullRequest, have branches) (pairs []pair) {
	for _, pr := range prs {
		if k := (pair{have.tips[pr.Base], have.tips[pr.Branch]}); k.base != "" && k.head != "" {
			pairs = append(pairs, k)
		}
	}
	return pairs
}

// stateOf tells whether a pull request that is recorded as open still is. It is merged if the base contains the head
// that was recorded, or holds its change. A branch that somebody has set to a commit of the base says nothing.
func (repo *repository) stateOf(ctx context.Context, pr gitprovider.PullRequest, have branches,
	compared map[pair]comparison) (gitprovider.State, error) {
	base, tip := have.tips[pr.Base], have.tips[pr.Branch]
	contained := compared[pair{base, tip}].contained
	switch {
	case tip == "" && base == "":
		return gitprovider.StateClosed, nil
	case base == "" || tip != "" && !contained:
		return gitprovider.StateOpen, nil
	case contained && tip == pr.HeadCommit:
		return gitprovider.StateMerged, nil
	}
	w, err := repo.workspace(base, false)
	if err != nil {
		return "", err
	}
	defer w.close()
	merged, err := w.isAncestor(ctx, pr.HeadCommit, base)
	if err == nil && !merged {
		merged, err = w.holds(ctx, base, pr.HeadCommit)
	}
	switch {
	case err != nil:
		return "", err
	case merged:
		return gitprovider.StateMerged, nil
	case tip == "":
		return gitprovider.StateClosed, nil
	}
	return gitprovider.StateOpen, nil
}

// maxHeld is at how many commits of the base, the newest that touch the files of a change, holds looks.
const maxHeld = 50

// holds reports whether the base has held the change of a commit since the two parted, no matter how it got there: by a
// squash, a rebase or a cherry-pick. It does if there is nothing left to merge. For a head that the repository no
// longer has the answer is false.
func (w *workspace) holds(ctx context.Context, base, head string) (bool, error) {
	if !isID(head) {
		return false, nil
	}
	if _, code, err := w.runGit(ctx, nil, []int{1}, "cat-file", "-e", head); err != nil || code != 0 {
		return false, err
	}
	compared, err := w.compareHeads(ctx, base, []string{head})
	change := compared[head]
	if err != nil || change.fork == "" || len(change.paths) == 0 {
		return false, err
	}
	out, _, err := w.runGit(ctx, nil, nil, append([]string{"--literal-pathspecs", "rev-list",
		fmt.Sprintf("--max-count=%d", maxHeld), base, "^" + change.fork, "--"}, change.paths...)...)
	if err != nil {
		return false, err
	}
	for _, commit := range strings.Fields(string(out)) {
		was, err := w.id(ctx, nil, "rev-parse", "--verify", commit+"^{tree}")
		if err != nil {
			return false, err
		}
		merge, err := w.mergeTree(ctx, pair{commit, head}, change.paths)
		if err != nil {
			return false, err
		}
		if merge.tree == was {
			return true, nil
		}
	}
	return false, nil
}

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

func (c *comparisons) store(gitDir string, k pair, v comparison) {
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

// compareHeads compares heads with their bases, in two processes for each distinct base whatever the number of heads.
func (repo *repository) compareHeads(ctx context.Context, pairs []pair) (map[pair]comparison, error) {
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
			repo.comparisons.store(repo.gitDir, pair{base, head}, c)
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
	out, _, err := w.runGit(ctx, strings.NewReader(ask), nil, "rev-list", "--parents", "--stdin")
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
	out, _, err := w.runGit(ctx, nil, nil, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
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
	out, _, err := w.runGit(ctx, strings.NewReader(lines), nil, "diff-tree", "--stdin", "-r", "-z", "--raw",
		"--no-renames")
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
