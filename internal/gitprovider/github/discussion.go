package github

import (
	"cmp"
	"context"
	"strconv"
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

// remarkFields are the newest of what people said. Empty ones and those of strangers are left out afterwards, so that
// more than one is asked for.
const remarkFields = `comments(last: 50) { nodes { id author { login } authorAssociation body createdAt isMinimized } }
    reviews(last: 50) { nodes { id author { login } authorAssociation body submittedAt state } } `

// remarkNode is a comment or a review; of the latter a pending one was not submitted.
type remarkNode struct {
	ID                     string
	Author                 *person
	AuthorAssociation      string
	Body, State            string
	CreatedAt, SubmittedAt *time.Time
	IsMinimized            bool
}

// remarks are in the order of their times. What is hidden is left out, as is what somebody said whose account is gone.
func (d discussion) remarks(ctx context.Context, repo gitprovider.RepoRef, number int) ([]gitprovider.Remark, error) {
	var pr struct {
		threadsNode
		Comments, Reviews connection[remarkNode]
	}
	if err := d.pulls.one(ctx, repo, number, newQuery(repo), remarkFields+threadFields(), "", &pr); err != nil {
		return nil, err
	}
	var out []gitprovider.Remark
	lines := pr.byReview()
	for _, n := range append(pr.Reviews.Nodes, pr.Comments.Nodes...) {
		if at := n.said(); !at.IsZero() {
			remark := n.remark(at)
			remark.Lines = lines[n.ID]
			out = append(out, remark)
		}
	}
	forge.SortRemarks(out)
	return out, nil
}

// said is when it was said: zero for what is hidden, or not submitted.
func (n *remarkNode) said() time.Time {
	if n == nil || n.Author == nil || n.IsMinimized {
		return time.Time{}
	}
	for _, at := range []*time.Time{n.CreatedAt, n.SubmittedAt} {
		if at != nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// remark converts a node. GitHub calls those who may write owners, members of the owning organisation, or
// collaborators.
func (n *remarkNode) remark(at time.Time) gitprovider.Remark {
	out := gitprovider.Remark{ID: n.ID, Author: n.Author.Login, Body: n.Body, At: at}
	if n.SubmittedAt != nil {
		out.State = reviewState(n.State)
	}
	switch n.AuthorAssociation {
	case "OWNER", "MEMBER", "COLLABORATOR":
		out.MayWrite = true
	}
	return out
}

func (d discussion) comment(ctx context.Context, repo gitprovider.RepoRef, number int, text string) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	var made struct{ ID int64 } // read, so that something else than GitHub's answer is noticed
	at := d.pulls.api.repoURL(repo, "issues", strconv.Itoa(number), "comments")
	err := d.pulls.api.post(ctx, at, needPulls, map[string]string{"body": text}, &made)
	return d.pulls.api.refusals.pullMissing(err, repo, number)
}

// reply answers below the first comment of each conversation: GitHub takes no answers to answers.
func (d discussion) reply(ctx context.Context, repo gitprovider.RepoRef, number int,
	replies []gitprovider.LineReply) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	for _, r := range replies {
		var made struct{ ID int64 }
		at := d.pulls.api.repoURL(repo, "pulls", strconv.Itoa(number), "comments", cmp.Or(r.To.Thread, r.To.ID), "replies")
		err := d.pulls.api.post(ctx, at, needPulls, map[string]string{"body": r.Text}, &made)
		if err != nil {
			return d.pulls.api.refusals.pullMissing(err, repo, number)
		}
	}
	return nil
}
