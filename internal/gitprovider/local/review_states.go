package local

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ReviewStates implements gitprovider.ReviewLister.
func (p *Provider) ReviewStates(ctx context.Context, ref gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	out := map[int]gitprovider.ReviewState{}
	for _, number := range numbers[:min(len(numbers), gitprovider.MaxReviewStates)] {
		_, reviews, err := p.pulls.records.PR(ctx, repo.key(), number)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		if state := gitprovider.StateOfReview(remarksOf(reviews)); state != "" {
			out[number] = state
		}
	}
	return out, nil
}
