package github

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// discussion reads what people said about a pull request, and who is asked to.
type discussion struct{ pulls pulls }

// detailFields are what Details reads: the first 100 of each, of which GitHub takes fewer.
const detailFields = `labels(first: 100) { nodes { name } } assignees(first: 100) { nodes { login } }
    reviewRequests(first: 100) { nodes { requestedReviewer { __typename ... on User { login } ... on Team { combinedSlug } } } }
    latestReviews(first: 100) { nodes { author { login } } }`

func (d discussion) details(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	var pr struct {
		Labels         labelList
		Assignees      connection[person]
		ReviewRequests connection[struct {
			RequestedReviewer *struct{ Login, CombinedSlug string }
		}]
		LatestReviews connection[struct{ Author *person }]
	}
	if err := d.pulls.one(ctx, repo, number, newQuery(repo), detailFields, "reviewRequests", &pr); err != nil {
		return gitprovider.Details{}, err
	}
	out := gitprovider.Details{Labels: pr.Labels.names()}
	for _, who := range pr.Assignees.Nodes {
		if who != nil {
			out.Assignees = append(out.Assignees, who.Login)
		}
	}
	for _, request := range pr.ReviewRequests.Nodes {
		if request != nil && request.RequestedReviewer != nil {
			out.Requested = append(out.Requested, request.RequestedReviewer.Login+request.RequestedReviewer.CombinedSlug)
		}
	}
	for _, review := range pr.LatestReviews.Nodes {
		if review != nil && review.Author != nil {
			out.Reviewed = append(out.Reviewed, review.Author.Login)
		}
	}
	return out, nil
}

// remarkFields are the newest of what people said. Empty ones and those of strangers are left out afterwards, so that more
// than one is asked for.
const remarkFields = `comments(last: 50) { nodes { author { login } authorAssociation body createdAt isMinimized } }
    reviews(last: 50) { nodes { author { login } authorAssociation body submittedAt } }`

// remarkNode is a comment or a review; of the latter a pending one was not submitted.
type remarkNode struct {
	Author                 *person
	AuthorAssociation      string
	Body                   string
	CreatedAt, SubmittedAt *time.Time
	IsMinimized            bool
}

func (d discussion) lastRemark(ctx context.Context, repo gitprovider.RepoRef, number int) (*gitprovider.Remark, error) {
	var pr struct{ Comments, Reviews connection[remarkNode] }
	if err := d.pulls.one(ctx, repo, number, newQuery(repo), remarkFields, "", &pr); err != nil {
		return nil, err
	}
	var remarks []gitprovider.Remark
	for _, n := range append(pr.Reviews.Nodes, pr.Comments.Nodes...) {
		if at := n.said(); !at.IsZero() {
			remarks = append(remarks, gitprovider.Remark{Author: n.Author.Login, Body: n.Body, At: at})
		}
	}
	return forge.NewestRemark(remarks), nil
}

// said is when somebody who may write said it: zero for what is hidden, not submitted, or a stranger's. GitHub calls those who
// may write owners, members of the owning organisation, or collaborators.
func (n *remarkNode) said() time.Time {
	if n == nil || n.Author == nil || n.IsMinimized {
		return time.Time{}
	}
	switch n.AuthorAssociation {
	case "OWNER", "MEMBER", "COLLABORATOR":
	default:
		return time.Time{}
	}
	for _, at := range []*time.Time{n.CreatedAt, n.SubmittedAt} {
		if at != nil {
			return at.UTC()
		}
	}
	return time.Time{}
}
