package local

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Details implements gitprovider.Editor. Nobody is assigned, or asked for a review, here.
func (p *Provider) Details(ctx context.Context, ref gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	var out gitprovider.Details
	repo, err := p.open(ctx, ref)
	if err != nil {
		return out, err
	}
	pr, reviews, err := p.records.PR(ctx, repo.key(), number)
	if err != nil {
		return out, err
	}
	out.Labels = pr.Labels
	for _, review := range reviews {
		if review.State != gitprovider.ReviewPending {
			out.Reviewed = append(out.Reviewed, review.Author)
		}
	}
	return out, nil
}

// SetBody implements gitprovider.Editor.
func (p *Provider) SetBody(ctx context.Context, ref gitprovider.RepoRef, number int, body string) error {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return err
	}
	return p.records.UpdatePR(ctx, repo.key(), number, func(pr *gitprovider.PullRequest) error {
		pr.Body = body
		return nil
	})
}

// LastRemark implements gitprovider.RemarkReader. Whoever reviews here may decide; comments are reviews, too.
func (p *Provider) LastRemark(ctx context.Context, ref gitprovider.RepoRef, number int) (*gitprovider.Remark, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	_, reviews, err := p.records.PR(ctx, repo.key(), number)
	if err != nil {
		return nil, err
	}
	var last *gitprovider.Remark
	for _, r := range reviews {
		if r.State != gitprovider.ReviewPending && strings.TrimSpace(r.Body) != "" {
			last = last.Newer(&gitprovider.Remark{Author: r.Author, Body: r.Body, At: r.SubmittedAt})
		}
	}
	return last, nil
}
