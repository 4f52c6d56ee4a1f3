package gitea

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Status implements gitprovider.Provider: pull request and reviews in one round, files and checks in a second.
//
// Gitea has no word for "still computing": it answers that a pull request cannot be merged, for half a second to two
// seconds after the base has moved. So that answer is looked at again a few times, and is believed when it stays; drafts
// can never be merged. Up to two seconds before, the answer is the one from before the base moved: nothing shows that. In
// the same way a pull request whose head branch is gone is looked at again until the server has closed it.
func (p *Provider) Status(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Status, error) {
	none := gitprovider.Status{}
	if err := p.noSuchNumber(repo, number); err != nil {
		return none, err
	}
	var from *gitea.PullRequest
	var status gitprovider.Status
	err := together(
		func() (err error) {
			from, err = p.pull(ctx, repo, number)
			return err
		},
		func() (err error) {
			status.Reviews, err = p.reviews(ctx, repo, number)
			return err
		},
	)
	if err == nil {
		from, err = p.settled(ctx, repo, from)
	}
	if err != nil {
		return none, p.noPull(ctx, repo, number, err)
	}
	status.PullRequest = pullRequest(from, p.now())
	if status.State == gitprovider.StateMerged && from.MergedBy != nil {
		status.MergedBy = from.MergedBy.UserName
	}
	err = together(
		func() (err error) {
			status.Paths, err = p.pathsOf(ctx, repo, from)
			return err
		},
		func() (err error) {
			status.Checks, err = p.checks(ctx, repo, status.HeadCommit)
			return err
		},
	)
	if err != nil {
		return none, p.judge(err, repo, pullName(number))
	}
	if status.State == gitprovider.StateOpen {
		mergeable := from.Mergeable
		status.Mergeable = &mergeable
	}
	return status, nil
}

// settled looks again at what the server may still be working on: after 0.5, 1 and 1.5 s, then it takes what it got.
func (p *Provider) settled(ctx context.Context, repo gitprovider.RepoRef, pr *gitea.PullRequest) (*gitea.PullRequest, error) {
	const step = 500 * time.Millisecond
	const looks = 3
	for i := 1; i <= looks && inTransit(pr); i++ {
		p.sleep(ctx, time.Duration(i)*step)
		next, err := p.pull(ctx, repo, int(pr.Index))
		if err != nil {
			return nil, err
		}
		pr = next
	}
	return pr, nil
}

func inTransit(pr *gitea.PullRequest) bool {
	if pr.HasMerged || pr.State != gitea.StateOpen {
		return false
	}
	return headGone(pr) || !pr.Mergeable && !isDraft(pr)
}

// isDraft goes by the title as well, for servers that do not show the field.
func isDraft(pr *gitea.PullRequest) bool {
	title := strings.ToUpper(pr.Title)
	return pr.Draft || strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// reviews reads all reviews, oldest first and pending ones last. Requests for a review are listed among them and left out.
func (p *Provider) reviews(ctx context.Context, repo gitprovider.RepoRef, number int) ([]gitprovider.Review, error) {
	from, _, err := readAll(ctx, func(ctx context.Context, n int) (page[*gitea.PullReview], error) {
		items, header, err := call(ctx, p, func(c *gitea.Client) ([]*gitea.PullReview, *gitea.Response, error) {
			return c.ListPullReviews(repo.Owner, repo.Name, int64(number), gitea.ListPullReviewsOptions{
				ListOptions: gitea.ListOptions{Page: n, PageSize: pageSize}, // without a page it ignores the limit
			})
		})
		return page[*gitea.PullReview]{items: present(items), total: totalOf(header)}, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(from, func(a, b *gitea.PullReview) int { return cmp.Compare(a.ID, b.ID) })
	var reviews []gitprovider.Review
	for _, r := range from {
		if state := reviewState(r); state != "" {
			review := gitprovider.Review{State: state, Body: r.Body}
			if r.Reviewer != nil {
				review.Author = r.Reviewer.UserName
			}
			if state != gitprovider.ReviewPending {
				review.SubmittedAt = r.Submitted.UTC()
			}
			reviews = append(reviews, review)
		}
	}
	slices.SortStableFunc(reviews, func(a, b gitprovider.Review) int {
		if pending := a.State == gitprovider.ReviewPending; pending != (b.State == gitprovider.ReviewPending) {
			return map[bool]int{true: 1, false: -1}[pending]
		}
		return a.SubmittedAt.Compare(b.SubmittedAt)
	})
	return reviews, nil
}

// reviewState is "" for what is no review.
func reviewState(r *gitea.PullReview) gitprovider.ReviewState {
	switch r.State {
	case gitea.ReviewStateApproved, gitea.ReviewStateRequestChanges, gitea.ReviewStateComment:
		if r.Dismissed {
			return gitprovider.ReviewDismissed
		}
	case gitea.ReviewStatePending:
		return gitprovider.ReviewPending
	}
	switch r.State {
	case gitea.ReviewStateApproved:
		return gitprovider.ReviewApproved
	case gitea.ReviewStateRequestChanges:
		return gitprovider.ReviewChangesRequested
	case gitea.ReviewStateComment:
		return gitprovider.ReviewCommented
	}
	return ""
}
