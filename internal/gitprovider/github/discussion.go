package github

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// discussion reads what people said about a pull request, and who is asked to.
type discussion struct {
	pulls   pulls
	writers writers
}

// detailFields selects the fields for Details: the first 100 of each, which is more than GitHub allows.
const detailFields = `labels(first: 100) { nodes { name } } assignees(first: 100) { nodes { login } }
    reviewRequests(first: 100) { nodes { requestedReviewer { ... on User { login } ... on Bot { login }
      ... on Mannequin { login } ... on Team { combinedSlug } } } }
    latestReviews(first: 100) { nodes { author { __typename login } } }`

func (d discussion) details(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	var pr struct {
		Labels         labelList
		Assignees      connection[userNode]
		ReviewRequests connection[struct {
			RequestedReviewer *struct{ Login, CombinedSlug string }
		}]
		LatestReviews connection[struct{ Author *userNode }]
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
		if request == nil || request.RequestedReviewer == nil {
			continue
		}
		// a reviewer of another kind has no name here
		if name := cmp.Or(request.RequestedReviewer.Login, request.RequestedReviewer.CombinedSlug); name != "" {
			out.Requested = append(out.Requested, name)
		}
	}
	for _, review := range pr.LatestReviews.Nodes {
		if review != nil && review.Author != nil && !review.Author.isBot() { // no person, so it stands for no team
			out.Reviewed = append(out.Reviewed, review.Author.Login)
		}
	}
	return out, nil
}

// remarkFields are the newest of what people said, and the last opinion of each who may write: every answer on a line
// is a review of its own, so that an approval soon is none of the newest. Empty ones and those of strangers are left
// out afterwards, so that more than one is asked for.
const remarkFields = commentFields + `reviews(last: 50) { nodes { ` + opinionNodes + ` } } ` + opinionFields

// commentFields select the newest comments of the conversation.
const commentFields = `comments(last: 50) { nodes { id author { __typename login } authorAssociation body createdAt
      isMinimized } } `

// opinionFields select the last approval, request for changes or dismissal of each reviewer who may write.
const (
	opinionFields = `latestOpinionatedReviews(first: 100, writersOnly: true) { nodes { ` + opinionNodes + ` } } `
	opinionNodes  = `id author { __typename login } authorAssociation body submittedAt state`
)

// remarkNode is a comment or a review; of the latter a pending one was not submitted.
type remarkNode struct {
	ID                     string
	Author                 *userNode
	AuthorAssociation      string
	Body, State            string
	CreatedAt, SubmittedAt *time.Time
	IsMinimized            bool
}

// remarks returns the remarks in the order of their times. Hidden ones, and those of deleted accounts, are left out.
func (d discussion) remarks(ctx context.Context, repo gitprovider.RepoRef, number int) ([]gitprovider.Remark, error) {
	var pr struct {
		threadsNode
		Comments, Reviews, LatestOpinionatedReviews connection[remarkNode]
	}
	if err := d.pulls.one(ctx, repo, number, newQuery(repo), remarkFields+threadFields(), "", &pr); err != nil {
		return nil, err
	}
	opinions, lines := pr.LatestOpinionatedReviews.Nodes, pr.byReview()
	var nodes []*remarkNode
	known := map[string]bool{}
	for _, n := range slices.Concat(pr.Reviews.Nodes, opinions, pr.Comments.Nodes) {
		if !n.remarkTime().IsZero() && !known[n.ID] {
			known[n.ID] = true
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, func(a, b *remarkNode) int { return a.remarkTime().Compare(b.remarkTime()) })
	writes, err := d.whoWrites(ctx, repo, nodes, opinions)
	if err != nil {
		return nil, err
	}
	var out []gitprovider.Remark
	for _, n := range nodes {
		remark := n.remark()
		remark.MayWrite, remark.Lines = writes[*n.Author], lines[n.ID]
		out = append(out, remark)
	}
	return out, nil
}

// whoWrites tells who of the authors may write to the repository. GitHub shows it with the opinions. For the others it
// is asked, the latest first: members and collaborators may have leave to read alone, and private members look like
// strangers. An owner needs no question, a bot gets none.
func (d discussion) whoWrites(ctx context.Context, repo gitprovider.RepoRef,
	nodes, opinions []*remarkNode) (map[userNode]bool, error) {
	writes := map[userNode]bool{}
	for _, n := range opinions {
		if n != nil && n.Author != nil {
			writes[*n.Author] = true
		}
	}
	var ask []string
	for _, n := range slices.Backward(nodes) {
		who := *n.Author
		if n.AuthorAssociation == "OWNER" {
			writes[who] = true
		}
		if !writes[who] && !who.isBot() && !slices.Contains(ask, who.Login) {
			ask = append(ask, who.Login)
		}
	}
	answers, err := d.writers.haveWriteAccess(ctx, repo, ask)
	for _, n := range nodes {
		writes[*n.Author] = writes[*n.Author] || !n.Author.isBot() && answers[n.Author.Login]
	}
	return writes, err
}

const (
	// writersAsked bounds the authors whose permission one reading of remarks checks. Those beyond are not quoted.
	writersAsked = 10
	// writersFresh is how long an answer is cached, and maxWriters the number of cached answers.
	writersFresh = 10 * time.Minute
	maxWriters   = 4096
)

// writers finds out who may write to a repository.
type writers struct {
	api   *api
	known *forge.LRU[string, writer] // by repository and login
	now   func() time.Time
}

type writer struct {
	may  bool
	seen time.Time
}

// haveWriteAccess tells it of people by their logins, with a request for each of the first writersAsked who are not
// known.
func (w writers) haveWriteAccess(ctx context.Context, repo gitprovider.RepoRef, logins []string) (map[string]bool,
	error) {
	out := map[string]bool{}
	var unknown []string
	for _, login := range logins {
		known, found := w.known.Get(writerKey(repo, login))
		if found && w.now().Sub(known.seen) < writersFresh {
			out[login] = known.may
		} else {
			unknown = append(unknown, login)
		}
	}
	unknown = unknown[:min(len(unknown), writersAsked)]
	may := make([]bool, len(unknown))
	err := forge.Each(ctx, unknown, func(ctx context.Context, i int, login string) (err error) {
		may[i], err = w.fetchWriteAccess(ctx, repo, login)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, login := range unknown {
		out[login] = may[i]
		w.known.Put(writerKey(repo, login), writer{may[i], w.now()})
	}
	return out, nil
}

func writerKey(repo gitprovider.RepoRef, login string) string {
	return forge.RepoKey(repo) + "\n" + strings.ToLower(login)
}

// fetchWriteAccess asks GitHub. A refusal is a no: of somebody who is gone, or where the token may not know.
func (w writers) fetchWriteAccess(ctx context.Context, repo gitprovider.RepoRef, login string) (bool, error) {
	var answer struct{ Permission string }
	at := w.api.repoURL(repo, "collaborators", login, "permission")
	_, err := w.api.get(ctx, at, needMetadata, &answer)
	if no := asRefusal(err); no != nil && no.status != http.StatusUnauthorized {
		return false, nil
	}
	return answer.Permission == "admin" || answer.Permission == "write", err
}

// remarkTime returns the time of a remark: zero if it is hidden, or not submitted.
func (n *remarkNode) remarkTime() time.Time {
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

// remark converts a node.
func (n *remarkNode) remark() gitprovider.Remark {
	out := gitprovider.Remark{ID: n.ID, Author: n.Author.Login, Program: n.Author.isBot(), Body: n.Body,
		At: n.remarkTime()}
	if n.SubmittedAt != nil {
		out.State = reviewState(n.State)
	}
	return out
}

func (d discussion) postComment(ctx context.Context, repo gitprovider.RepoRef, number int, text string) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	var made struct{ ID int64 } // read, so that something else than GitHub's answer is noticed
	at := d.pulls.api.repoURL(repo, "issues", strconv.Itoa(number), "comments")
	return d.pulls.api.postTo(ctx, repo, number, at, map[string]string{"body": text}, &made)
}

// postReplies answers below the first comment of each conversation: GitHub takes no answers to answers.
func (d discussion) postReplies(ctx context.Context, repo gitprovider.RepoRef, number int,
	replies []gitprovider.LineReply) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	for _, r := range replies {
		var made struct{ ID int64 }
		at := d.pulls.api.repoURL(repo, "pulls", strconv.Itoa(number), "comments", cmp.Or(r.To.Thread, r.To.ID), "replies")
		if err := d.pulls.api.postTo(ctx, repo, number, at, map[string]string{"body": r.Text}, &made); err != nil {
			return err
		}
	}
	return nil
}

// maxThreads and commentsOfThread bound the comments on lines that are read of one pull request: the newest
// conversations, and the first comments of each. GitHub makes a review of its own of every answer, so that a comment
// belongs to the review that it came with.
const (
	maxThreads       = 100
	commentsOfThread = 30
)

// threadFields select the conversations about lines, and the head that lines of those that are not outdated are counted
// in.
func threadFields() string {
	return "linesHead: headRefOid reviewThreads(last: " + strconv.Itoa(maxThreads) +
		") { nodes { isResolved isOutdated path line originalLine diffSide " +
		"comments(first: " + strconv.Itoa(commentsOfThread) +
		") { nodes { fullDatabaseId author { login } body isMinimized " +
		"originalCommit { oid } pullRequestReview { id } } } } } "
}

// threadsNode is a pull request as it answers threadFields.
type threadsNode struct {
	LinesHead     string
	ReviewThreads connection[threadNode]
}

type threadNode struct {
	IsResolved, IsOutdated bool
	Path, DiffSide         string
	Line, OriginalLine     int // 0 where GitHub has none
	Comments               connection[lineNode]
}

type lineNode struct {
	FullDatabaseID    string
	Author            *userNode
	Body              string
	IsMinimized       bool
	OriginalCommit    *struct{ Oid string }
	PullRequestReview *struct{ ID string }
}

// byReview gives the comments on lines of each review, by its node id. What is hidden is left out.
func (n threadsNode) byReview() map[string][]gitprovider.LineComment {
	out := map[string][]gitprovider.LineComment{}
	for _, t := range n.ReviewThreads.Nodes {
		if t == nil {
			continue
		}
		for _, c := range t.Comments.Nodes {
			if c != nil && c.PullRequestReview != nil && !c.IsMinimized {
				one := t.lineComment(c, n.LinesHead)
				if first := t.Comments.Nodes[0]; first != nil && first != c {
					one.Thread = first.FullDatabaseID
				}
				out[c.PullRequestReview.ID] = append(out[c.PullRequestReview.ID], one)
			}
		}
	}
	return out
}

// lineComment returns one comment of a conversation. A line is counted in the head, or, where that has moved on, in the
// commit that it was written for.
func (t *threadNode) lineComment(c *lineNode, head string) gitprovider.LineComment {
	out := gitprovider.LineComment{
		ID: c.FullDatabaseID, Path: t.Path, Line: t.Line, Commit: head, Before: t.DiffSide == "LEFT", Resolved: t.IsResolved,
		Body: strings.ReplaceAll(c.Body, "\r\n", "\n"),
	}
	if t.IsOutdated || t.Line == 0 {
		out.Line, out.Commit = t.OriginalLine, ""
		if c.OriginalCommit != nil {
			out.Commit = c.OriginalCommit.Oid
		}
	}
	if c.Author != nil {
		out.Author = c.Author.Login
	}
	return out
}

// ReviewStates implements gitprovider.ReviewLister with one query, as a rule, over the last opinion of each reviewer
// who may write.
func (p *Provider) ReviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	numbers = numbers[:min(len(numbers), gitprovider.MaxReviewStates)]
	states, err := p.discussion.reviewStates(about(ctx, repo), repo, numbers)
	return states, publish(err)
}

// reviewStates asks about all together, or, if that is too much for GitHub, about one half after the other.
func (d discussion) reviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	states, err := d.askReviewStates(ctx, repo, numbers)
	if !tooMuch(err) || len(numbers) < 2 {
		return states, err
	}
	half := len(numbers) / 2
	states, err = d.reviewStates(ctx, repo, numbers[:half])
	if err != nil {
		return nil, err
	}
	more, err := d.reviewStates(ctx, repo, numbers[half:])
	maps.Copy(states, more)
	return states, err
}

func (d discussion) askReviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	out := map[int]gitprovider.ReviewState{}
	q := newQuery(repo)
	var fresh []int
	for _, number := range numbers {
		if alias := "pull" + strconv.Itoa(number); number > 0 {
			if d.pulls.api.fresh.has(pullObject(repo, number)) {
				fresh = append(fresh, number)
			}
			q.variable(alias, "Int!", number)
			q.selectField(alias + ": pullRequest(number: $" + alias + ") { " + opinionFields + "}")
		}
	}
	if len(q.fields) == 0 {
		return out, nil
	}
	q.tolerate = func(e graphError) bool { // a pull request that is not there is null
		return e.Type == "NOT_FOUND" && len(e.Path) > 1
	}
	var from *map[string]json.RawMessage
	read := func() (err error) {
		from, err = queryRepository[map[string]json.RawMessage](ctx, d.pulls.api, q, needPullsRead)
		return err
	}
	missing := func(err error) bool {
		return err == nil && slices.ContainsFunc(fresh, func(number int) bool {
			return isNull((*from)["pull"+strconv.Itoa(number)])
		})
	}
	if _, err := d.pulls.api.fresh.waitWhile(ctx, missing, read); err != nil {
		return nil, err
	}
	for alias := range *from {
		var pr struct{ LatestOpinionatedReviews connection[remarkNode] }
		if err := decodeField(*from, alias, &pr); err != nil {
			return nil, err
		}
		var remarks []gitprovider.Remark
		for _, n := range pr.LatestOpinionatedReviews.Nodes {
			if n != nil && n.Author != nil && n.SubmittedAt != nil {
				remark := n.remark()
				remark.MayWrite = true
				remarks = append(remarks, remark)
			}
		}
		number, err := strconv.Atoi(strings.TrimPrefix(alias, "pull"))
		if state := gitprovider.StateOfReview(remarks); state != "" && err == nil {
			out[number] = state
		}
	}
	return out, nil
}
