package gitea

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// discussion reads what people said about a pull request, and who is asked to.
type discussion struct {
	api   *api
	pulls pulls
}

func (d discussion) details(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	var out gitprovider.Details
	pr, reviews, err := d.withReviews(ctx, repo, number)
	if err != nil {
		return out, err
	}
	out.Labels = labelNames(pr.Labels)
	for _, who := range withoutNulls(pr.Assignees) {
		out.Assignees = append(out.Assignees, who.UserName)
	}
	for _, who := range withoutNulls(pr.RequestedReviewers) {
		out.Requested = append(out.Requested, who.UserName)
	}
	for _, team := range withoutNulls(pr.RequestedReviewersTeams) {
		out.Requested = append(out.Requested, repo.Owner+"/"+team.Name)
	}
	for _, review := range reviews {
		if review.State != gitprovider.ReviewPending {
			out.Reviewed = append(out.Reviewed, review.Author)
		}
	}
	return out, nil
}

// withReviews reads a pull request and its reviews side by side.
func (d discussion) withReviews(ctx context.Context, repo gitprovider.RepoRef, number int) (pr *gitea.PullRequest,
	reviews []gitprovider.Review, err error) {
	err = forge.Together(
		forge.Into(&pr, func() (*gitea.PullRequest, error) { return d.pulls.read(ctx, repo, number) }),
		forge.Into(&reviews, func() ([]gitprovider.Review, error) { return d.reviews(ctx, repo, number) }),
	)
	return pr, reviews, err
}

func (d discussion) comment(ctx context.Context, repo gitprovider.RepoRef, number int, text string) error {
	var made struct{ ID int64 } // read, so that something else than the server's answer is noticed
	err := d.api.post(ctx, d.api.repoURL(repo, "issues", strconv.Itoa(number), "comments"), map[string]string{"body": text}, &made)
	if statusIs(err, http.StatusInternalServerError) { // its answer for a number that does not exist
		if _, lookErr := d.pulls.read(ctx, repo, number); isMissing(lookErr) {
			return lookErr
		}
	}
	return err
}

// remarks reads reviews, comments and those who may be assigned. The server lets those be assigned who may write, and
// tells it to everybody who may read; asking for somebody's permission is for administrators. Without the scope for issues
// comments are left out, and where that list is closed nobody counts as one who may write.
func (d discussion) remarks(ctx context.Context, repo gitprovider.RepoRef, number int) ([]gitprovider.Remark, error) {
	var reviews []gitprovider.Review
	var comments []*gitea.Comment
	var writers map[string]bool
	err := forge.Together(
		forge.Into(&reviews, func() ([]gitprovider.Review, error) { return d.reviews(ctx, repo, number) }),
		func() error {
			at := d.api.repoURL(repo, "issues", strconv.Itoa(number), "comments")
			_, err := d.api.get(ctx, at, nil, &comments) // has no pages
			return ignoreStatus(err, http.StatusForbidden)
		},
		func() (err error) {
			writers, err = d.api.assignable(ctx, repo)
			return ignoreStatus(err, http.StatusForbidden, http.StatusNotFound)
		},
	)
	if err != nil {
		return nil, err
	}
	var out []gitprovider.Remark
	add := func(r gitprovider.Remark) {
		r.MayWrite = writers[strings.ToLower(r.Author)]
		out = append(out, r)
	}
	for _, r := range reviews {
		if r.State != gitprovider.ReviewPending {
			add(gitprovider.Remark{Author: r.Author, Body: r.Body, At: r.SubmittedAt, State: r.State})
		}
	}
	for _, c := range withoutNulls(comments) {
		if c.Poster != nil && c.OriginalAuthor == "" { // else it was brought along from another host
			add(gitprovider.Remark{Author: c.Poster.UserName, Body: c.Body, At: c.Created.UTC()})
		}
	}
	forge.SortRemarks(out)
	return out, nil
}

// reviews reads all reviews, oldest first and pending ones last. Requests for a review are listed among them and left out.
func (d discussion) reviews(ctx context.Context, repo gitprovider.RepoRef, number int) ([]gitprovider.Review, error) {
	from, _, err := pagesOf(d.api, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.PullReview, *gitea.Response, error) {
		return c.ListPullReviews(repo.Owner, repo.Name, int64(number), gitea.ListPullReviewsOptions{ListOptions: o})
	}).all(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(from, func(a, b *gitea.PullReview) int { return cmp.Compare(a.ID, b.ID) })
	var reviews, pending []gitprovider.Review
	for _, r := range from {
		review := gitprovider.Review{State: reviewState(r), Body: r.Body}
		if r.Reviewer != nil {
			review.Author = r.Reviewer.UserName
		}
		switch review.State {
		case "":
		case gitprovider.ReviewPending:
			pending = append(pending, review)
		default:
			review.SubmittedAt = r.Submitted.UTC()
			reviews = append(reviews, review)
		}
	}
	slices.SortStableFunc(reviews, func(a, b gitprovider.Review) int { return a.SubmittedAt.Compare(b.SubmittedAt) })
	return append(reviews, pending...), nil
}

// reviewState is "" for what is no review.
func reviewState(r *gitea.PullReview) gitprovider.ReviewState {
	state := map[gitea.ReviewStateType]gitprovider.ReviewState{
		gitea.ReviewStateApproved:       gitprovider.ReviewApproved,
		gitea.ReviewStateRequestChanges: gitprovider.ReviewChangesRequested,
		gitea.ReviewStateComment:        gitprovider.ReviewCommented,
		gitea.ReviewStatePending:        gitprovider.ReviewPending,
	}[r.State]
	if r.Dismissed && state != "" && state != gitprovider.ReviewPending {
		return gitprovider.ReviewDismissed
	}
	return state
}
