package gitea

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
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
		forge.Into(&pr, func() (*gitea.PullRequest, error) { return d.pulls.readPull(ctx, repo, number) }),
		forge.Into(&reviews, func() ([]foundReview, error) { return d.reviews(ctx, repo, number) }),
	)
	return pr, reviews, err
}

func (d discussion) postComment(ctx context.Context, repo gitprovider.RepoRef, number int, text string) error {
	var made struct{ ID int64 } // read, so that something else than the server's answer is noticed
	err := d.api.post(ctx, d.api.repoURL(repo, "issues", strconv.Itoa(number), "comments"),
		map[string]string{"body": text}, &made)
	if statusIs(err, http.StatusInternalServerError) { // its answer for a number that does not exist
		if _, lookErr := d.pulls.readPull(ctx, repo, number); isMissing(lookErr) {
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

func (d discussion) postReplies(ctx context.Context, repo gitprovider.RepoRef, number int,
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
		from, err := callSDK(ctx, d.api, func(c *gitea.Client) ([]*gitea.PullReviewComment, *gitea.Response, error) {
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

// reviewNumbers finds out which pull requests of a list may have a submitted review. Some servers leave the number of
// reviews out where it is 0, others do not know it.
type reviewNumbers struct {
	api   *api
	known *atomic.Bool // the server is known to know the number
}

// fewUnknown limits the pull requests without a review count whose reviews are read directly: for so few, that costs
// less than reading the server's description of its API.
const fewUnknown = 5

// mayHaveReview gives what tells whether a pull request may have a review. A server that gives the number for any of
// the list leaves out nothing but zeros, and so does one whose description of its API has it. Otherwise only a pull
// request to which nothing has happened since it was opened counts as one without: a review is a change of it.
func (n reviewNumbers) mayHaveReview(ctx context.Context, list []*gitea.PullRequest) func(*gitea.PullRequest) bool {
	unsure := 0
	for _, pr := range list {
		if pr.ReviewComments == unknownReviews && !isUntouched(pr) {
			unsure++
		}
	}
	told := slices.ContainsFunc(list, func(pr *gitea.PullRequest) bool { return pr.ReviewComments != unknownReviews })
	if told || !n.known.Load() && unsure > fewUnknown && n.described(ctx) {
		n.known.Store(true)
	}
	knows := n.known.Load()
	return func(pr *gitea.PullRequest) bool {
		if pr.ReviewComments == unknownReviews {
			return !knows && !isUntouched(pr)
		}
		return pr.ReviewComments > 0
	}
}

func isUntouched(pr *gitea.PullRequest) bool {
	return pr.Created != nil && pr.Updated != nil && pr.Updated.Equal(*pr.Created)
}

// described reports whether the server's description of its API has the number. Servers may be set to have no
// description.
func (n reviewNumbers) described(ctx context.Context) bool {
	var description struct {
		Definitions struct {
			PullRequest struct {
				Properties struct {
					Number *struct{} `json:"review_comments"`
				} `json:"properties"`
			} `json:"PullRequest"` //nolint:tagliatelle // the server's
		} `json:"definitions"`
	}
	_, err := n.api.get(ctx, transport.URL(n.api.base, "swagger.v1.json"), nil, &description)
	return err == nil && description.Definitions.PullRequest.Properties.Number != nil
}

// ReviewStates implements gitprovider.ReviewLister with one request for each, and one for those who may write.
func (p *Provider) ReviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	states, err := p.discussion.reviewStates(ctx, repo, numbers)
	return states, p.api.toFault(err, repo, "")
}

// reviewStates counts no reviewer as one who may write where the server does not tell; see remarks.
func (d discussion) reviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	numbers = numbers[:min(len(numbers), gitprovider.MaxReviewStates)]
	reviews := map[int][]gitprovider.Review{}
	var writers map[string]bool
	var mu sync.Mutex
	err := forge.Together(
		func() (err error) {
			writers, err = d.api.assignable(ctx, repo)
			return ignoreStatus(err, http.StatusForbidden, http.StatusNotFound)
		},
		func() error {
			return forge.Each(ctx, numbers, func(ctx context.Context, _ int, number int) error {
				of, err := d.reviews(ctx, repo, number)
				mu.Lock()
				defer mu.Unlock()
				reviews[number] = plainReviews(of)
				return ignoreStatus(err, http.StatusNotFound)
			})
		},
	)
	if err != nil {
		return nil, err
	}
	out := map[int]gitprovider.ReviewState{}
	for number, of := range reviews {
		var remarks []gitprovider.Remark
		for _, r := range of {
			if r.State != gitprovider.ReviewPending {
				remarks = append(remarks, gitprovider.Remark{
					Author: r.Author, At: r.SubmittedAt, State: r.State, MayWrite: writers[strings.ToLower(r.Author)],
				})
			}
		}
		if state := gitprovider.StateOfReview(remarks); state != "" {
			out[number] = state
		}
	}
	return out, nil
}
