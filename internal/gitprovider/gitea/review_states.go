package gitea

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// ReviewStates implements gitprovider.ReviewLister with one request for each, and one for those who may write.
func (p *Provider) ReviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	states, err := p.discussion.reviewStates(ctx, repo, numbers)
	return states, p.api.toFault(err, repo, "")
}

// reviewStates counts no reviewer as one who may write where the server does not tell; see remarks.
func (d discussion) reviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	numbers = numbers[:min(len(numbers), gitprovider.MaxReviewStates)]
	reviews := map[int][]gitprovider.Review{}
	var writers map[string]bool
	var mu sync.Mutex
	err := forge.Together(
		func() (err error) {
			writers, err = d.api.assignable(ctx, repo)
			return ignoreStatus(err, http.StatusForbidden, http.StatusNotFound)
		},
		func() error {
			return forge.Each(ctx, numbers, func(ctx context.Context, _ int, number int) error {
				of, err := d.reviews(ctx, repo, number)
				mu.Lock()
				defer mu.Unlock()
				reviews[number] = plainReviews(of)
				return ignoreStatus(err, http.StatusNotFound)
			})
		},
	)
	if err != nil {
		return nil, err
	}
	out := map[int]gitprovider.ReviewState{}
	for number, of := range reviews {
		var remarks []gitprovider.Remark
		for _, r := range of {
			if r.State != gitprovider.ReviewPending {
				remarks = append(remarks, gitprovider.Remark{
					Author: r.Author, At: r.SubmittedAt, State: r.State, MayWrite: writers[strings.ToLower(r.Author)],
				})
			}
		}
		if state := gitprovider.StateOfReview(remarks); state != "" {
			out[number] = state
		}
	}
	return out, nil
}
