package forgetest

import (
	"context"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Details implements gitprovider.Editor. The Fake knows neither assignees nor requests for reviews.
func (f *Fake) Details(ctx context.Context, ref gitprovider.RepoRef, number int) (out gitprovider.Details, err error) {
	err = f.Script.call(ctx, MethodDetails, func() error {
		pr, err := f.pr(ref, number)
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

// SetBody implements gitprovider.Editor.
func (f *Fake) SetBody(ctx context.Context, ref gitprovider.RepoRef, number int, body string) error {
	return f.Script.call(ctx, MethodSetBody, func() error {
		pr, err := f.pr(ref, number)
		if err == nil {
			pr.Body = body
		}
		return err
	})
}

// LastRemark implements gitprovider.RemarkReader. Everybody but memhost.Stranger may write.
func (f *Fake) LastRemark(ctx context.Context, ref gitprovider.RepoRef, number int) (last *gitprovider.Remark, err error) {
	err = f.Script.call(ctx, MethodLastRemark, func() error {
		pr, err := f.pr(ref, number)
		if err != nil {
			return err
		}
		said := slices.Clone(pr.Comments)
		for _, review := range pr.Reviews {
			if !review.SubmittedAt.IsZero() {
				said = append(said, gitprovider.Remark{Author: review.Author, Body: review.Body, At: review.SubmittedAt})
			}
		}
		for _, remark := range said {
			if remark.Author != memhost.Stranger && strings.TrimSpace(remark.Body) != "" {
				last = last.Newer(&remark)
			}
		}
		return nil
	})
	return last, err
}
