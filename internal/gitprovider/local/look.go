package local

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// view is what a look at a repository's branches and open pull requests shows.
type view struct {
	refs refs
	open []gitprovider.PullRequest // oldest first; head, paths and URL as of now
}

// look reads the open pull requests and compares them with the repository. What people did with plain git is recorded:
// a pull request whose head is in the base was merged, one whose branch is gone was closed. Records are read before
// branches, so that a pull request that is opened meanwhile is not taken for one whose branch is gone.
func (p *Provider) look(ctx context.Context, repo *repository) (view, error) {
	recorded, err := p.records.PRs(ctx, repo.key(), gitprovider.StateOpen)
	if err != nil {
		return view{}, err
	}
	seen := view{}
	if seen.refs, err = p.refs(ctx, repo); err != nil || len(recorded) == 0 {
		return seen, err
	}
	compared, err := p.compare(ctx, repo, pairsOf(recorded, seen.refs))
	if err != nil {
		return seen, err
	}
	for _, pr := range recorded {
		state, err := p.stateOf(ctx, repo, pr, seen.refs, compared)
		if err != nil {
			return seen, err
		}
		if state != gitprovider.StateOpen {
			if err := p.settle(ctx, repo, pr.Number, state); err != nil {
				return seen, err
			}
			continue
		}
		seen.open = append(seen.open, present(repo, pr, seen.refs, compared))
	}
	return seen, nil
}

// pairsOf lists what has to be compared: the heads and bases that exist.
func pairsOf(prs []gitprovider.PullRequest, have refs) []pair {
	var pairs []pair
	for _, pr := range prs {
		if k := (pair{have.tips[pr.Base], have.tips[pr.Branch]}); k.base != "" && k.head != "" {
			pairs = append(pairs, k)
		}
	}
	return pairs
}

// stateOf tells whether a pull request that is recorded as open still is. A head that is in the base says "merged" if
// it is, or comes after, the head that was recorded; a branch that was merely set back to an older commit says nothing.
func (p *Provider) stateOf(ctx context.Context, repo *repository, pr gitprovider.PullRequest, have refs,
	compared map[pair]comparison,
) (gitprovider.State, error) {
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
	w, err := p.workspace(repo, base, false)
	if err != nil {
		return "", err
	}
	defer w.close()
	merged, err := w.isAncestor(ctx, pr.HeadCommit, base)
	switch {
	case err != nil:
		return "", err
	case merged:
		return gitprovider.StateMerged, nil
	case tip == "":
		return gitprovider.StateClosed, nil
	}
	setBack, err := w.isAncestor(ctx, tip, pr.HeadCommit)
	if err != nil || setBack {
		return gitprovider.StateOpen, err
	}
	return gitprovider.StateMerged, nil
}

// settle records how a pull request ended, unless somebody else did.
func (p *Provider) settle(ctx context.Context, repo *repository, number int, state gitprovider.State) error {
	return p.records.UpdatePR(ctx, repo.key(), number, func(pr *gitprovider.PullRequest) error {
		if pr.State == gitprovider.StateOpen {
			pr.State, pr.ClosedAt = state, p.now().UTC()
		}
		return nil
	})
}

// present fills in what is read from git. A head or base that is gone leaves what was recorded.
func present(repo *repository, pr gitprovider.PullRequest, have refs,
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
