package local

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Status implements gitprovider.Provider. There is no CI, so the checks are always ChecksNone. Whether an open pull
// request can be merged is computed at once, never nil.
func (p *Provider) Status(ctx context.Context, ref gitprovider.RepoRef, number int) (gitprovider.Status, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return gitprovider.Status{}, err
	}
	status, _, err := p.status(ctx, repo, number)
	return status, err
}

func (p *Provider) status(ctx context.Context, repo *repository, number int) (gitprovider.Status, view, error) {
	none := gitprovider.Status{}
	seen, err := p.look(ctx, repo)
	if err != nil {
		return none, seen, err
	}
	pr, reviews, err := p.records.PR(ctx, repo.key(), number)
	if err != nil {
		return none, seen, err
	}
	status := gitprovider.Status{
		PullRequest: seen.current(repo, pr),
		Reviews:     reviews,
		Checks:      gitprovider.Checks{State: gitprovider.ChecksNone},
	}
	if status.State == gitprovider.StateOpen {
		mergeable, err := p.mergeable(ctx, repo, seen.refs, status.PullRequest)
		if err != nil {
			return none, seen, err
		}
		status.Mergeable = &mergeable
	}
	return status, seen, nil
}

// mergeable tries the merge in a workspace that keeps nothing.
func (p *Provider) mergeable(ctx context.Context, repo *repository, have refs, pr gitprovider.PullRequest) (bool,
	error) {
	base, head := have.tips[pr.Base], have.tips[pr.Branch]
	if base == "" || head == "" {
		return false, nil
	}
	compared, err := p.compare(ctx, repo, []pair{{base, head}})
	if err != nil || compared[pair{base, head}].unrelated {
		return false, err
	}
	w, err := p.workspace(repo, base, false)
	if err != nil {
		return false, err
	}
	defer w.close()
	_, conflicts, err := w.mergeTree(ctx, base, head)
	return err == nil && len(conflicts) == 0, err
}
