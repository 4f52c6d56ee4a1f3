package gitea

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// Details implements gitprovider.Editor: pull request and reviews side by side.
func (p *Provider) Details(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	var out gitprovider.Details
	if err := p.noSuchNumber(repo, number); err != nil {
		return out, err
	}
	var pr *gitea.PullRequest
	var reviews []gitprovider.Review
	err := together(
		func() (err error) {
			pr, err = p.pull(ctx, repo, number)
			return err
		},
		func() (err error) {
			reviews, err = p.reviews(ctx, repo, number)
			return err
		},
	)
	if err != nil {
		return out, p.noPull(ctx, repo, number, err)
	}
	out.Labels = labelNames(pr.Labels)
	for _, who := range present(pr.Assignees) {
		out.Assignees = append(out.Assignees, who.UserName)
	}
	for _, who := range present(pr.RequestedReviewers) {
		out.Requested = append(out.Requested, who.UserName)
	}
	for _, team := range present(pr.RequestedReviewersTeams) {
		out.Requested = append(out.Requested, repo.Owner+"/"+team.Name)
	}
	for _, review := range reviews {
		if review.State != gitprovider.ReviewPending {
			out.Reviewed = append(out.Reviewed, review.Author)
		}
	}
	return out, nil
}

// SetBody implements gitprovider.Editor.
func (p *Provider) SetBody(ctx context.Context, repo gitprovider.RepoRef, number int, body string) error {
	if err := p.noSuchNumber(repo, number); err != nil {
		return err
	}
	encoded, err := json.Marshal(map[string]string{"body": body})
	if err != nil {
		return fault.Wrap(err, fault.Internal, "a request to Gitea could not be encoded")
	}
	var now struct{ Number int } // read, so that something else than the server's answer is noticed
	_, err = p.exchange(transport.Repeatable(ctx), http.MethodPatch, p.repoURL(repo, "pulls", itoa(number)), encoded, &now)
	return p.judge(err, repo, pullName(number))
}

// LastRemark implements gitprovider.RemarkReader: reviews, comments and those who may be assigned, side by side. The server
// lets those be assigned who may write, and tells it to everybody who may read; asking for somebody's permission is for
// administrators. Without the scope for issues, or where that list is closed, comments, or all, are left out.
func (p *Provider) LastRemark(ctx context.Context, repo gitprovider.RepoRef, number int) (*gitprovider.Remark, error) {
	if err := p.noSuchNumber(repo, number); err != nil {
		return nil, err
	}
	var reviews []gitprovider.Review
	var comments []*gitea.Comment
	var writers map[string]bool
	err := together(
		func() (err error) {
			reviews, err = p.reviews(ctx, repo, number)
			return err
		},
		func() (err error) {
			_, err = p.get(ctx, p.repoURL(repo, "issues", itoa(number), "comments"), nil, &comments) // has no pages
			return unless(err, http.StatusForbidden)
		},
		func() (err error) {
			writers, err = p.assignable(ctx, repo)
			return unless(err, http.StatusForbidden, http.StatusNotFound)
		},
	)
	if err != nil {
		return nil, p.noPull(ctx, repo, number, err)
	}
	var last *gitprovider.Remark
	said := func(remark gitprovider.Remark) {
		if writers[strings.ToLower(remark.Author)] && strings.TrimSpace(remark.Body) != "" {
			last = last.Newer(&remark)
		}
	}
	for _, r := range reviews {
		if r.State != gitprovider.ReviewPending {
			said(gitprovider.Remark{Author: r.Author, Body: r.Body, At: r.SubmittedAt})
		}
	}
	for _, c := range present(comments) {
		if c.Poster != nil && c.OriginalAuthor == "" { // else it was brought along from another host
			said(gitprovider.Remark{Author: c.Poster.UserName, Body: c.Body, At: c.Created.UTC()})
		}
	}
	return last, nil
}

// unless is err, or nil if it is a refusal by one of the statuses.
func unless(err error, statuses ...int) error {
	if statusIs(err, statuses...) {
		return nil
	}
	return err
}
