package github

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// detailFields are what Details reads: the first 100 of each, of which GitHub takes fewer.
const detailFields = `labels(first: 100) { nodes { name } } assignees(first: 100) { nodes { login } }
    reviewRequests(first: 100) { nodes { requestedReviewer { __typename ... on User { login } ... on Team { combinedSlug } } } }
    latestReviews(first: 100) { nodes { author { login } } }`

type person struct{ Login string }

// Details implements gitprovider.Editor with one query. A team that the token may not see is left out.
func (p *Provider) Details(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	ctx = about(ctx, repo)
	out := gitprovider.Details{}
	var pr struct {
		Labels         struct{ Nodes []struct{ Name string } }
		Assignees      struct{ Nodes []*person }
		ReviewRequests struct {
			Nodes []*struct {
				RequestedReviewer *struct{ Login, CombinedSlug string }
			}
		}
		LatestReviews struct {
			Nodes []*struct{ Author *person }
		}
	}
	if err := p.askAbout(ctx, repo, number, detailFields, "reviewRequests", &pr); err != nil {
		return out, publish(err)
	}
	for _, label := range pr.Labels.Nodes {
		out.Labels = append(out.Labels, label.Name)
	}
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

// SetBody implements gitprovider.Editor.
func (p *Provider) SetBody(ctx context.Context, repo gitprovider.RepoRef, number int, body string) error {
	ctx = about(ctx, repo)
	if number < 1 || number > maxNumber {
		return noSuchPull(repo, number)
	}
	var now struct{ Number int }
	_, err := p.rest(transport.Repeatable(ctx), request{
		method: http.MethodPatch, url: p.repoURL(repo, "pulls", decimal(number)), body: map[string]string{"body": body},
		need: needPulls,
	}, &now)
	return publish(p.pullMissing(err, repo, number))
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

// LastRemark implements gitprovider.RemarkReader with one query over the newest 50 comments and as many reviews. GitHub calls
// those who may write owners, members of the owning organisation, or collaborators.
func (p *Provider) LastRemark(ctx context.Context, repo gitprovider.RepoRef, number int) (*gitprovider.Remark, error) {
	ctx = about(ctx, repo)
	var pr struct{ Comments, Reviews struct{ Nodes []*remarkNode } }
	if err := p.askAbout(ctx, repo, number, remarkFields, "", &pr); err != nil {
		return nil, publish(err)
	}
	var last *gitprovider.Remark
	for _, n := range append(pr.Reviews.Nodes, pr.Comments.Nodes...) {
		last = last.Newer(n.remark())
	}
	return last, nil
}

// remark is what counts as said: nil for what is empty, hidden, not submitted, or a stranger's.
func (n *remarkNode) remark() *gitprovider.Remark {
	if n == nil || n.Author == nil || n.IsMinimized || strings.TrimSpace(n.Body) == "" {
		return nil
	}
	switch n.AuthorAssociation {
	case "OWNER", "MEMBER", "COLLABORATOR":
	default:
		return nil
	}
	at := n.CreatedAt
	if at == nil {
		at = n.SubmittedAt
	}
	if at == nil {
		return nil
	}
	return &gitprovider.Remark{Author: n.Author.Login, Body: n.Body, At: at.UTC()}
}
