package fakegitea

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

type commentJSON struct {
	ID               int64     `json:"id"`
	HTMLURL          string    `json:"html_url"`
	PullRequestURL   string    `json:"pull_request_url"`
	IssueURL         string    `json:"issue_url"`
	User             *userJSON `json:"user"`
	OriginalAuthor   string    `json:"original_author"`
	OriginalAuthorID int64     `json:"original_author_id"`
	Body             string    `json:"body"`
	Assets           []string  `json:"assets"`
	CreatedAt        string    `json:"created_at"`
	UpdatedAt        string    `json:"updated_at"`
}

// listComments has no pages. Of a number that does not exist the server says that it failed itself.
func listComments(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, internalError(fmt.Sprintf("issue does not exist [id: 0, repo_id: %d, index: %s]", c.at.st.id,
			c.params["index"]))
	}
	list := []commentJSON{}
	for i := range pr.Comments {
		list = append(list, c.comment(pr, i))
	}
	return ok(list).counted(len(list)), nil
}

func (c *call) comment(pr *memhost.PR, i int) commentJSON {
	said, id := pr.Comments[i], int64(pr.Number*1000+i)
	return commentJSON{
		ID: id, HTMLURL: fmt.Sprintf("%s#issuecomment-%d", c.json.pullPage(pr), id), PullRequestURL: c.json.pullPage(pr),
		User: c.s.stranger(said.Author), Body: said.Body, Assets: []string{},
		CreatedAt: stampTime(said.At), UpdatedAt: stampTime(said.At),
	}
}

// createComment lets everybody comment who may read.
func createComment(c *call) (*answer, error) {
	var in struct {
		Body string `json:"body"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := required("Body", in.Body); err != nil {
		return nil, err
	}
	pr := c.numbered()
	switch {
	case c.at.repo.Archived:
		return nil, refuse(http.StatusLocked, c.at.repo.Ref.String()+" is archived")
	case pr == nil:
		return nil, internalError(fmt.Sprintf("issue does not exist [id: 0, repo_id: %d, index: %s]", c.at.st.id,
			c.params["index"]))
	}
	pr.Comments = append(pr.Comments, gitprovider.Remark{Author: c.viewer, Body: in.Body, At: c.s.host.Now()})
	return &answer{status: http.StatusCreated, body: c.comment(pr, len(pr.Comments)-1)}, nil
}

// listAssignees lists those who may write, by name, to everybody who may read. It has no pages.
func listAssignees(c *call) (*answer, error) {
	logins := []string{Owner}
	for login, may := range c.at.st.Collaborators {
		if may == "write" {
			logins = append(logins, login)
		}
	}
	slices.Sort(logins)
	list := []*userJSON{}
	for _, login := range slices.Compact(logins) {
		list = append(list, c.s.acquaintance(login))
	}
	return ok(list), nil
}
