package local

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Lateness implements gitprovider.Settler: git commands that change a branch are waited for (see BranchTip), those of a
// process that was killed included.
func (p *Provider) Lateness() time.Duration { return 0 }

// OurBranches implements gitprovider.Settler. It waits for nobody who writes: what has just been made is for those who make it.
func (p *Provider) OurBranches(ctx context.Context, ref gitprovider.RepoRef) (map[string]string, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	have, err := p.refs(ctx, repo)
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

// ReadCommit implements gitprovider.Settler.
func (p *Provider) ReadCommit(ctx context.Context, ref gitprovider.RepoRef, id string) (gitprovider.CommitInfo, error) {
	none := gitprovider.CommitInfo{}
	missing := fault.New(fault.NotFound, "the repository %s has no commit %.100q", ref, id)
	repo, err := p.open(ctx, ref)
	if err != nil {
		return none, err
	}
	if !isID(id) {
		return none, missing
	}
	w, err := p.workspace(repo, id, false)
	if err != nil {
		return none, err
	}
	defer w.close()
	if _, code, err := w.run(ctx, nil, []int{1, 128}, "cat-file", "-e", id+"^{commit}"); err != nil || code != 0 {
		if err == nil {
			err = missing
		}
		return none, err
	}
	out, _, err := w.run(ctx, nil, nil, "show", "--no-patch", "--no-show-signature", "--format=%H%n%P%n%ct%n%B", id)
	if err != nil {
		return none, err
	}
	info, err := parseCommit(string(out))
	if err != nil {
		return none, err
	}
	out, _, err = w.run(ctx, nil, nil, "diff-tree", "--root", "-r", "-z", "-m", "--first-parent", "--no-commit-id", "--name-only",
		"--no-renames", id)
	if err != nil {
		return none, err
	}
	info.Paths = splitZ(out)
	slices.Sort(info.Paths)
	return info, nil
}

// parseCommit reads id, parents, seconds and message, each on a line of its own but the last.
func parseCommit(text string) (gitprovider.CommitInfo, error) {
	parts := strings.SplitN(text, "\n", 4)
	if len(parts) == 4 {
		if seconds, err := strconv.ParseInt(parts[2], 10, 64); err == nil {
			return gitprovider.CommitInfo{
				ID: parts[0], Parents: strings.Fields(parts[1]), Time: time.Unix(seconds, 0).UTC(),
				Message: strings.TrimRight(parts[3], "\n") + "\n",
			}, nil
		}
	}
	return gitprovider.CommitInfo{}, fault.New(fault.Internal, "git answered something else than a commit")
}

// Withdraw implements gitprovider.Settler.
func (p *Provider) Withdraw(ctx context.Context, ref gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return err
	}
	seen, err := p.look(ctx, repo)
	if err != nil {
		return err
	}
	return p.records.UpdatePR(ctx, repo.key(), w.Number, func(pr *gitprovider.PullRequest) error {
		if err := w.Check(seen.current(repo, *pr)); err != nil {
			return err
		}
		if pr.State == gitprovider.StateOpen {
			pr.State, pr.ClosedAt = gitprovider.StateClosed, p.now().UTC()
		}
		pr.Body = w.Body
		return nil
	})
}

// OpenOurs implements gitprovider.Settler.
func (p *Provider) OpenOurs(ctx context.Context, ref gitprovider.RepoRef, below int) ([]gitprovider.PullRequest, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	seen, err := p.look(ctx, repo)
	return slices.DeleteFunc(seen.open, func(pr gitprovider.PullRequest) bool { return pr.Number >= below || notOurs(pr) }), err
}
