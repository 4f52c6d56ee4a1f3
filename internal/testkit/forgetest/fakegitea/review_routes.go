package fakegitea

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

type reviewJSON struct {
	ID             int64     `json:"id"`
	User           *userJSON `json:"user"`
	Team           *string   `json:"team"`
	State          string    `json:"state"`
	Body           string    `json:"body"`
	CommitID       string    `json:"commit_id"`
	Stale          bool      `json:"stale"`
	Official       bool      `json:"official"`
	Dismissed      bool      `json:"dismissed"`
	CommentsCount  int       `json:"comments_count"`
	SubmittedAt    string    `json:"submitted_at"`
	UpdatedAt      string    `json:"updated_at"`
	HTMLURL        string    `json:"html_url"`
	PullRequestURL string    `json:"pull_request_url"`
}

// reviews brings what the server knows of the reviews into line with the host's.
func (r *repository) reviews(pr *memhost.PR) []review {
	known := r.pull(pr)
	for i := len(known.reviews); i < len(pr.Reviews); i++ {
		made := review{
			id: r.s.next("review"), login: pr.Reviews[i].Author, commit: pr.HeadCommit, submitted: pr.Reviews[i].SubmittedAt,
			dismissed: pr.Reviews[i].State == gitprovider.ReviewDismissed,
		}
		if made.submitted.IsZero() {
			made.submitted = r.s.host.Now()
		}
		r.s.userID(made.login)
		known.reviews = append(known.reviews, made)
	}
	return known.reviews
}

// requests returns the review requests that are still open: a review of any kind but a pending one answers them.
func (r *repository) requests(pr *memhost.PR) []review {
	r.reviews(pr)
	known := r.pull(pr)
	known.requested = slices.DeleteFunc(known.requested, func(asked review) bool {
		return slices.ContainsFunc(pr.Reviews[asked.after:], func(r gitprovider.Review) bool {
			return r.Author == asked.login && r.State != gitprovider.ReviewPending
		})
	})
	return known.requested
}

// request asks for a review, once.
func (r *repository) request(pr *memhost.PR, login string) (made review, isNew bool) {
	open := r.requests(pr)
	if slices.ContainsFunc(open, func(r review) bool { return r.login == login }) {
		return review{}, false
	}
	made = review{id: r.s.next("review"), login: login, submitted: r.s.host.Now(), after: len(pr.Reviews)}
	r.pull(pr).requested = append(open, made)
	return made, true
}

func isVerdict(state gitprovider.ReviewState) bool {
	return state == gitprovider.ReviewApproved || state == gitprovider.ReviewChangesRequested
}

func (j *rendering) reviewJSON(pr *memhost.PR, i int, head string) reviewJSON {
	r, said := j.at.pull(pr).reviews[i], pr.Reviews[i]
	superseded := slices.ContainsFunc(pr.Reviews[i+1:], func(later gitprovider.Review) bool {
		return later.Author == said.Author && isVerdict(later.State)
	})
	out := j.blankReview(pr, r)
	out.State, out.Body, out.CommitID, out.Stale = "APPROVED", said.Body, r.commit, r.commit != head
	out.HTMLURL = fmt.Sprintf("%s#issuecomment-%d", j.pullPage(pr), r.eventID())
	out.CommentsCount = len(said.Comments)
	switch said.State {
	case gitprovider.ReviewChangesRequested:
		out.State = "REQUEST_CHANGES"
	case gitprovider.ReviewCommented:
		out.State = "COMMENT"
	case gitprovider.ReviewPending:
		out.State = "PENDING"
	}
	verdict := out.State == "APPROVED" || out.State == "REQUEST_CHANGES"
	out.Official = verdict && !superseded && j.at.mayWrite(r.login)
	out.Dismissed = verdict && (superseded || r.dismissed)
	return out
}

func (j *rendering) blankReview(pr *memhost.PR, r review) reviewJSON {
	when := stampTime(r.submitted)
	return reviewJSON{
		ID: r.id, User: j.person(r.login), SubmittedAt: when, UpdatedAt: when, PullRequestURL: j.pullPage(pr),
	}
}

func (j *rendering) requestJSON(pr *memhost.PR, r review) reviewJSON {
	out := j.blankReview(pr, r)
	out.State, out.Official = "REQUEST_REVIEW", j.at.mayWrite(r.login)
	return out
}

func (r *repository) mayWrite(login string) bool {
	return login == Owner || r.st.Collaborators[login] == "write"
}

// listReviews shows a pending review to its author and to administrators only, but counts it for everybody.
func listReviews(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, c.noPull()
	}
	var all []reviewJSON
	for _, r := range c.at.requests(pr) {
		all = append(all, c.json.requestJSON(pr, r))
	}
	head := c.at.pull(pr).inReviews.show(pr.HeadCommit)
	for i := range c.at.reviews(pr) {
		all = append(all, c.json.reviewJSON(pr, i, head))
	}
	slices.SortFunc(all, func(a, b reviewJSON) int { return cmp.Compare(a.ID, b.ID) })
	shown := slices.DeleteFunc(cut(all, lazyPageOf(c.query)), func(r reviewJSON) bool {
		return r.State == "PENDING" && !c.json.admin() && c.viewer != r.User.Login
	})
	return ok(shown).counted(len(all)), nil
}

// requestReviews ignores teams, which repositories of a person do not have, and what was asked for already.
func requestReviews(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, c.noPull()
	}
	var in struct {
		Reviewers     []string `json:"reviewers"`
		TeamReviewers []string `json:"team_reviewers"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	known, list := c.at.pull(pr), []reviewJSON{}
	for _, login := range in.Reviewers {
		if !c.s.knows(login) {
			return nil, noReviewer(login)
		}
		if c.at.repo.Archived || (c.at.access < writeAccess && known.poster != c.viewer) || c.at.st.ReadOnly {
			return nil, unprocessable(fmt.Sprintf("Doer can't choose reviewer [user_id: %d, repo_id: %d]",
				c.s.userID(c.viewer), c.at.st.id))
		}
		if login == known.poster {
			return nil, unprocessable(fmt.Sprintf("poster of pr can't be reviewer [user_id: %d, repo_id: %d]",
				c.s.userID(login), c.at.st.id))
		}
		if made, isNew := c.at.request(pr, login); isNew {
			list = append(list, c.json.requestJSON(pr, made))
		}
	}
	if len(list) > 0 {
		c.at.touched(pr)
	}
	return created(list), nil
}

// createReview takes remarks alone: a verdict of ours would be a fault of the adapter.
func createReview(c *call) (*answer, error) {
	var in struct {
		Event    string `json:"event"`
		Body     string `json:"body"`
		Comments []struct {
			Path   string `json:"path"`
			Body   string `json:"body"`
			After  int    `json:"new_position"`
			Before int    `json:"old_position"`
		} `json:"comments"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	pr := c.numbered()
	switch {
	case in.Event != "COMMENT": // see testdata/api.json
		return nil, unprocessable("no verdict is taken here")
	case c.at.repo.Archived:
		return nil, refuse(http.StatusLocked, c.at.repo.Ref.String()+" is archived")
	case pr == nil:
		return nil, c.noPull()
	case in.Body == "" && len(in.Comments) == 0:
		return nil, unprocessable("review event COMMENT requires a body or a comment")
	}
	made := gitprovider.Review{Author: c.viewer, State: gitprovider.ReviewCommented, Body: in.Body,
		SubmittedAt: c.s.host.Now()}
	for _, on := range in.Comments {
		made.Comments = append(made.Comments, gitprovider.LineComment{
			Author: c.viewer, Path: on.Path, Line: max(on.After, on.Before), Before: on.After == 0, Commit: pr.HeadCommit,
			Body: on.Body,
		})
	}
	pr.Reviews = append(pr.Reviews, made)
	c.at.touched(pr)
	c.at.reviews(pr)
	return ok(c.json.reviewJSON(pr, len(pr.Reviews)-1, pr.HeadCommit)), nil
}

type lineCommentJSON struct {
	ID               int64     `json:"id"`
	Body             string    `json:"body"`
	User             *userJSON `json:"user"`
	Resolver         *userJSON `json:"resolver"`
	ReviewID         int64     `json:"pull_request_review_id"`
	CreatedAt        string    `json:"created_at"`
	UpdatedAt        string    `json:"updated_at"`
	Path             string    `json:"path"`
	CommitID         string    `json:"commit_id"`
	OriginalCommitID string    `json:"original_commit_id"`
	DiffHunk         string    `json:"diff_hunk"`
	Position         int       `json:"position"`
	OriginalPosition int       `json:"original_position"`
	HTMLURL          string    `json:"html_url"`
	PullRequestURL   string    `json:"pull_request_url"`
}

// listReviewComments lists the comments on lines of one review, answers to them included. It has no pages. position is
// the line after the change, and original_position that before it: one of them is 0.
func listReviewComments(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, c.noPull()
	}
	id, _ := strconv.ParseInt(c.params["id"], 10, 64)
	at := slices.IndexFunc(c.at.reviews(pr), func(r review) bool { return r.id == id })
	if at < 0 {
		return nil, notFound()
	}
	if pr.Reviews[at].State == gitprovider.ReviewPending && !c.json.admin() && c.viewer != pr.Reviews[at].Author {
		return nil, &refusal{status: http.StatusNotFound, message: "Not Found"}
	}
	list := []lineCommentJSON{}
	for i := range pr.Reviews[at].Comments {
		list = append(list, c.json.lineComment(pr, at, i))
	}
	return ok(list), nil
}

// eventID returns the id of the review's submission among comments of all kinds. Comments on lines come before it,
// answers to them after it.
func (r review) eventID() int64 { return r.id*1000 + 500 }

// lineComment shows as the time of a comment that came with the review the one when the review was begun, as the server
// does.
func (j *rendering) lineComment(pr *memhost.PR, at, i int) lineCommentJSON {
	known, said := j.at.pull(pr).reviews[at], pr.Reviews[at].Comments[i]
	id, when, author := known.eventID()+1+int64(i), said.At, said.Author
	if when.IsZero() {
		id, when = known.id*1000+int64(i), known.submitted
	}
	if author == "" {
		author = known.login
	}
	out := lineCommentJSON{
		ID: id, Body: said.Body, User: j.person(author), ReviewID: known.id, CreatedAt: stampTime(when),
		UpdatedAt: stampTime(when),
		Path:      said.Path, CommitID: said.Commit, Position: said.Line,
		HTMLURL:        fmt.Sprintf("%s#issuecomment-%d", j.pullPage(pr), id),
		PullRequestURL: j.pullPage(pr),
	}
	if said.Before {
		out.Position, out.OriginalPosition = 0, said.Line
	}
	if said.Resolved {
		out.Resolver = j.person(Owner)
	}
	return out
}
