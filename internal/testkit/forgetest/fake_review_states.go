package forgetest

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ReviewStates implements gitprovider.ReviewLister.
func (f *Fake) ReviewStates(ctx context.Context, ref gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	out := map[int]gitprovider.ReviewState{}
	err := f.Script.call(ctx, MethodReviewStates, func() error {
		if _, err := f.repo(ref); err != nil {
			return err
		}
		for _, number := range numbers {
			pr, err := pullOf(f, ref, number)
			if err != nil {
				continue
			}
			if state := gitprovider.StateOfReview(remarksOf(pr)); state != "" {
				out[number] = state
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
