package gitea

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// foundReview is a review with what is needed to read its comments on lines.
type foundReview struct {
	gitprovider.Review
	id     int64
	event  int64  // id, among comments of all kinds, of its submission; 0 if that is not known
	lines  int    // how many comments on lines it has
	commit string // head when it was submitted, which the lines are counted in
}

// plainReviews returns the reviews in the port's terms.
func plainReviews(found []foundReview) (out []gitprovider.Review) {
	for _, r := range found {
		out = append(out, r.Review)
	}
	return out
}

// reviews reads all reviews, oldest first and pending ones last, without comments on lines. Requests for a review are
// listed among them and left out.
func (d discussion) reviews(ctx context.Context, repo gitprovider.RepoRef, number int) ([]foundReview, error) {
	from, _, err := pagesOf(d.api, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.PullReview, *gitea.Response,
		error) {
		return c.ListPullReviews(repo.Owner, repo.Name, int64(number), gitea.ListPullReviewsOptions{ListOptions: o})
	}).all(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(from, func(a, b *gitea.PullReview) int { return cmp.Compare(a.ID, b.ID) })
	var reviews, pending []foundReview
	for _, r := range from {
		review := foundReview{
			Review: gitprovider.Review{State: reviewState(r), Body: r.Body}, id: r.ID, event: eventOf(r),
			lines: r.CodeCommentsCount, commit: r.CommitID,
		}
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
	slices.SortStableFunc(reviews, func(a, b foundReview) int { return a.SubmittedAt.Compare(b.SubmittedAt) })
	return append(reviews, pending...), nil
}

// eventOf reads the id of a review's submission from its address. Reviews have ids of their own, and the time of one is
// that of its first comment on a line, which may be long before it was submitted.
func eventOf(r *gitea.PullReview) int64 {
	_, id, _ := strings.Cut(r.HTMLURL, "#issuecomment-")
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// readLines fills in the comments on lines of the newest gitprovider.MaxCommentedReviews reviews that have any, with a
// request for each, side by side. What a reviewer has not submitted stays theirs.
func (d discussion) readLines(ctx context.Context, repo gitprovider.RepoRef, number int, reviews []foundReview) error {
	var with []int
	for i, r := range reviews {
		if r.lines > 0 && r.State != gitprovider.ReviewPending {
			with = append(with, i)
		}
	}
	unread := max(0, len(with)-gitprovider.MaxCommentedReviews)
	for _, i := range with[:unread] {
		reviews[i].UnreadComments = reviews[i].lines
	}
	with = with[unread:]
	return forge.Each(ctx, with, func(ctx context.Context, _, i int) error {
		from, err := call(ctx, d.api, func(c *gitea.Client) ([]*gitea.PullReviewComment, *gitea.Response, error) {
			return c.ListPullReviewComments(repo.Owner, repo.Name, int64(number), reviews[i].id)
		})
		if isMissing(err) { // somebody has removed the review
			return nil
		}
		reviews[i].Comments = lineComments(reviews[i], withoutNulls(from))
		return err
	})
}

// lineComments returns the comments in the order in which they were made. Those after the review's submission are
// answers. The server notes a resolved conversation at its first comment.
func lineComments(r foundReview, from []*gitea.PullReviewComment) (out []gitprovider.LineComment) {
	type place struct {
		path        string
		line, older uint64
	}
	placeOf := func(c *gitea.PullReviewComment) place { return place{c.Path, c.LineNum, c.OldLineNum} }
	resolved := map[place]bool{}
	for _, c := range from {
		resolved[placeOf(c)] = resolved[placeOf(c)] || c.Resolver != nil
	}
	slices.SortStableFunc(from, func(a, b *gitea.PullReviewComment) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range from {
		one := gitprovider.LineComment{
			ID: strconv.FormatInt(c.ID, 10), Path: c.Path, Line: int(max(c.LineNum, c.OldLineNum)), //nolint:gosec // G115: a line
			Before: c.LineNum == 0 && c.OldLineNum > 0, Commit: r.commit, Body: c.Body, Resolved: resolved[placeOf(c)],
		}
		if c.Reviewer != nil {
			one.Author = c.Reviewer.UserName
		}
		if r.event > 0 && c.ID > r.event || one.Author != r.Author {
			one.At = c.Created.UTC()
		}
		out = append(out, one)
	}
	return out
}
