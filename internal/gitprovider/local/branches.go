package local

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// branches are the branches of a repository at one moment.
type branches struct {
	tips map[string]string // commit by branch name
	head string            // the branch that HEAD names, if it exists; "" otherwise
}

// refConfig configures git for commands in the repository itself: the wait for a lock of another process is bounded.
func refConfig() []string {
	return []string{"core.filesRefLockTimeout=2000", "core.packedRefsTimeout=2000"}
}

// refCommand runs git in the repository itself, to read references.
func (repo *repository) refCommand(ctx context.Context, accept []int, args ...string) ([]byte, int, error) {
	return repo.git.run(ctx, command{
		gitDir: repo.gitDir, config: refConfig(), args: args, accept: accept,
	})
}

// branches lists them.
func (repo *repository) branches(ctx context.Context) (branches, error) {
	if found, sure, err := repo.readBranches(ctx); sure || err != nil {
		return found, err
	}
	return repo.askBranches(ctx)
}

// askBranches has git list them.
func (repo *repository) askBranches(ctx context.Context) (branches, error) {
	out, _, err := repo.refCommand(ctx, nil, "for-each-ref", "--format=%(HEAD) %(objectname) %(refname)",
		headsPrefix)
	if err != nil {
		return branches{}, err
	}
	found := branches{tips: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		if len(line) < 2 {
			continue
		}
		id, name, ok := strings.Cut(strings.TrimSuffix(line[2:], "\n"), " ")
		branch, isBranch := strings.CutPrefix(name, headsPrefix)
		if !ok || !isBranch || !isID(id) {
			continue
		}
		found.tips[branch] = id
		if line[0] == '*' {
			found.head = branch
		}
	}
	return found, nil
}

const headsPrefix = "refs/heads/"

// defaultBranch is the branch that pull requests go into unless somebody names another; "" if there is none. In a bare
// repository it is the one that HEAD names. In an ordinary one HEAD is whatever is checked out at this moment: there it
// is the one that HEAD of origin names, else main or master, and HEAD only for want of those.
func (repo *repository) defaultBranch(have branches) string {
	if repo.isBare() {
		return have.head
	}
	const origin = "refs/remotes/origin/"
	if text, err := readPlain(filepath.Join(repo.gitDir, filepath.FromSlash(origin), "HEAD"), 1<<10); err == nil {
		branch, names := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), "ref: "+origin)
		if names && have.tips[branch] != "" {
			return branch
		}
	}
	usual := []string{"main", "master"}
	if slices.Contains(usual, have.head) {
		return have.head
	}
	for _, branch := range usual {
		if have.tips[branch] != "" {
			return branch
		}
	}
	return have.head
}

// baseBranch decides which branch is the base, and says what to do when there is none.
func (repo *repository) baseBranch(ctx context.Context, have branches, asked string) (string, error) {
	switch {
	case len(have.tips) == 0:
		return "", fault.New(fault.NotFound, "the repository %s is empty; push a first commit to it", repo.ref)
	case asked != "" && have.tips[asked] == "":
		return "", gitprovider.NoBase(repo.ref, asked, repo.defaultBranch(have))
	case asked != "":
		return asked, nil
	}
	if branch := repo.defaultBranch(have); branch != "" {
		return branch, nil
	}
	out, code, err := repo.refCommand(ctx, []int{1}, "symbolic-ref", "-q", "HEAD")
	switch {
	case err != nil:
		return "", err
	case code != 0:
		return "", fault.New(fault.NotFound,
			"the repository %s has no default branch, its HEAD is detached; name a base branch", repo.ref)
	}
	missing := strings.TrimPrefix(strings.TrimSpace(string(out)), headsPrefix)
	return "", fault.New(fault.NotFound,
		"the default branch %.200q of %s does not exist; name a base branch, or have the operator set HEAD with git "+
			"symbolic-ref",
		missing, repo.ref)
}

// BranchTip implements gitprovider.Provider. It waits for writes that are under way, those of a process that was killed
// meanwhile included: what it answers does not change by itself any more.
func (p *Provider) BranchTip(ctx context.Context, ref gitprovider.RepoRef, branch string) (string, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return "", err
	}
	lock, err := lockForWriting(ctx, repo)
	if err != nil {
		return "", err
	}
	defer lock.unlock()
	have, err := repo.branches(ctx)
	return have.tips[branch], err
}

// DeleteBranch implements gitprovider.Provider. Beside the codes of the port: invalid_argument for a branch that is not
// one of ours, conflict for the branch that HEAD names, since its work tree would lose its history.
func (p *Provider) DeleteBranch(ctx context.Context, ref gitprovider.RepoRef, branch, tip string) error {
	if err := gitprovider.CheckOurs(branch); err != nil {
		return err
	}
	if !isID(tip) {
		return fault.New(fault.InvalidArgument, "the expected commit of the branch %s is not an object id", branch)
	}
	repo, err := p.open(ctx, ref)
	if err != nil {
		return err
	}
	have, err := repo.branches(ctx)
	switch {
	case err != nil:
		return err
	case have.tips[branch] == "":
		return nil
	case have.tips[branch] != tip:
		return fault.New(fault.Conflict, "the branch %s has moved since, so it was not deleted; somebody has added to it",
			branch)
	case have.head == branch:
		return fault.New(fault.Conflict, "the branch %s is checked out, so it was not deleted; check out another branch "+
			"first", branch)
	}
	return repo.removeBranch(ctx, branch, tip)
}

// removeBranch deletes a branch if its tip is still the given commit. A branch that is gone already is not an error.
func (repo *repository) removeBranch(ctx context.Context, branch, tip string) error {
	t := &transaction{}
	t.remove(branch, tip)
	refused := repo.update(ctx, t, "claude-ops: removed")
	if refused == nil {
		return nil
	}
	have, err := repo.branches(ctx)
	switch {
	case err != nil:
		return refused
	case have.tips[branch] == "":
		return nil
	case have.tips[branch] != tip:
		return fault.Wrap(refused, fault.Conflict,
			"the branch %s has moved since, so it was not deleted; somebody has added to it", branch)
	}
	return refused
}

// Lateness implements gitprovider.Settler: git commands that change a branch are waited for (see BranchTip), those of a
// process that was killed included.
func (p *Provider) Lateness() time.Duration { return 0 }

// OurBranches implements gitprovider.Settler. It does not wait for writers: a branch that was just made belongs to the
// process that made it.
func (p *Provider) OurBranches(ctx context.Context, ref gitprovider.RepoRef) (map[string]string, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	have, err := repo.branches(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for branch, tip := range have.tips {
		if strings.HasPrefix(branch, gitprovider.BranchPrefix) {
			out[branch] = tip
		}
	}
	return out, nil
}

// isBranchName follows the rules of git check-ref-format(1) for a branch below refs/heads/.
func isBranchName(s string) bool {
	if s == "" || len(s) > 255 || strings.HasPrefix(s, "-") || strings.HasSuffix(s, ".") || s == "@" ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("~^:?*[\\", r)
	})
}
