package gitea

import (
	"context"
	"net/http"
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
	reviews []foundReview, err error) {
	err = forge.Together(
		forge.Into(&pr, func() (*gitea.PullRequest, error) { return d.pulls.read(ctx, repo, number) }),
		forge.Into(&reviews, func() ([]foundReview, error) { return d.reviews(ctx, repo, number) }),
	)
	return pr, reviews, err
}

func (d discussion) comment(ctx context.Context, repo gitprovider.RepoRef, number int, text string) error {
	var made struct{ ID int64 } // read, so that something else than the server's answer is noticed
	err := d.api.post(ctx, d.api.repoURL(repo, "issues", strconv.Itoa(number), "comments"),
		map[string]string{"body": text}, &made)
	if statusIs(err, http.StatusInternalServerError) { // its answer for a number that does not exist
		if _, lookErr := d.pulls.read(ctx, repo, number); isMissing(lookErr) {
			return lookErr
		}
	}
	return err
}

// reviewComment is a comment on a line of a review that is made: the line after the change, or that before it; the
// other is 0.
type reviewComment struct {
	Path   string `json:"path"`
	Body   string `json:"body"`
	After  int    `json:"new_position"`
	Before int    `json:"old_position"`
}

func (d discussion) reply(ctx context.Context, repo gitprovider.RepoRef, number int,
	replies []gitprovider.LineReply) error {
	in := struct {
		Event    string          `json:"event"`
		Comments []reviewComment `json:"comments"`
	}{Event: "COMMENT"}
	for _, r := range replies {
		one := reviewComment{Path: r.To.Path, Body: r.Quoting, After: r.To.Line}
		if r.To.Before {
			one.After, one.Before = 0, r.To.Line
		}
		in.Comments = append(in.Comments, one)
	}
	var made struct{ ID int64 }
	return d.api.post(ctx, d.api.repoURL(repo, "pulls", strconv.Itoa(number), "reviews"), in, &made)
}

// remarks reads reviews, comments and the assignable users. The server lists users who may write as assignable, for
// everyone who may read; reading a user's permission needs an administrator. Without the scope for issues comments are
// left out, and where that list is not accessible no user counts as one who may write.
func (d discussion) remarks(ctx context.Context, repo gitprovider.RepoRef, number int) ([]gitprovider.Remark, error) {
	var reviews []foundReview
	var comments []gitprovider.Remark
	var writers map[string]bool
	err := forge.Together(
		forge.Into(&reviews, func() ([]foundReview, error) { return d.reviews(ctx, repo, number) }),
		forge.Into(&comments, func() ([]gitprovider.Remark, error) { return d.conversation(ctx, repo, number) }),
		func() (err error) {
			writers, err = d.api.assignable(ctx, repo)
			return ignoreStatus(err, http.StatusForbidden, http.StatusNotFound)
		},
	)
	if err != nil {
		return nil, err
	}
	if err := d.readLines(ctx, repo, number, reviews); err != nil {
		return nil, err
	}
	var out []gitprovider.Remark
	for _, r := range reviews {
		if r.State != gitprovider.ReviewPending {
			out = append(out, gitprovider.ReviewRemarks("review "+strconv.FormatInt(r.id, 10), r.Review)...)
		}
	}
	out = append(out, comments...)
	for i := range out {
		out[i].MayWrite = writers[strings.ToLower(out[i].Author)]
	}
	forge.SortRemarks(out)
	return out, nil
}

// conversation reads the comments of a pull request, in one request: the list has no pages. Without
// the scope for issues
// there are none.
func (d discussion) conversation(ctx context.Context, repo gitprovider.RepoRef, number int) (out []gitprovider.Remark,
	err error) {
	var comments []*gitea.Comment
	_, err = d.api.get(ctx, d.api.repoURL(repo, "issues", strconv.Itoa(number), "comments"), nil, &comments)
	for _, c := range withoutNulls(comments) {
		if c.Poster != nil && c.OriginalAuthor == "" { // else it was brought along from another host
			out = append(out, gitprovider.Remark{
				ID: "comment " + strconv.FormatInt(c.ID, 10), Author: c.Poster.UserName, Body: c.Body, At: c.Created.UTC(),
			})
		}
	}
	return out, ignoreStatus(err, http.StatusForbidden)
}

// reviewState converts the state of a review; "" if it is not a review.
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
