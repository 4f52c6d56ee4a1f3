package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

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
