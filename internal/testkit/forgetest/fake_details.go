package forgetest

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Details implements gitprovider.Editor. The Fake knows neither assignees nor requests for reviews.
func (f *Fake) Details(ctx context.Context, ref gitprovider.RepoRef, number int) (out gitprovider.Details, err error) {
	err = f.Script.call(ctx, MethodDetails, func() error {
		pr, err := pullOf(f, ref, number)
		if err != nil {
			return err
		}
		out.Labels = slices.Clone(pr.Labels)
		for _, review := range pr.Reviews {
			out.Reviewed = append(out.Reviewed, review.Author)
		}
		return nil
	})
	return out, err
}
