package fakegitea

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func (j *rendering) label(l Label) labelJSON {
	return labelJSON{
		ID: l.ID, Name: l.Name, Color: l.Color, Description: l.Description, Exclusive: l.Exclusive,
		URL: fmt.Sprintf("%s/labels/%d", j.at.api(), l.ID),
	}
}

func (j *rendering) labelList(labels []Label) []labelJSON {
	list := []labelJSON{}
	for _, l := range labels {
		list = append(list, j.label(l))
	}
	return list
}

func listLabels(c *call) (*answer, error) {
	all := slices.Clone(c.at.st.Labels)
	slices.SortStableFunc(all, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return ok(c.json.labelList(cut(all, lazyPageOf(c.query)))).counted(len(all)), nil
}

type createLabelBody struct {
	Name        string `json:"name"`
	Color       string `json:"color"`
	Description string `json:"description"`
}

// createLabel silently makes a second label of the same name, in an archived repository too.
func createLabel(c *call) (*answer, error) {
	var in createLabelBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := required("Name", in.Name, "Color", in.Color); err != nil {
		return nil, err
	}
	if err := c.at.writer(); err != nil {
		return nil, err
	}
	color := strings.ToLower(strings.TrimPrefix(in.Color, "#"))
	if valid, err := regexp.MatchString("^([0-9a-f]{3}|[0-9a-f]{6})$", color); err != nil || !valid {
		return nil, unprocessable("invalid color: #" + color)
	}
	if len(color) == 3 {
		color = string([]byte{color[0], color[0], color[1], color[1], color[2], color[2]})
	}
	made := Label{ID: c.s.next("label"), Name: in.Name, Color: color, Description: in.Description}
	c.at.st.Labels = append(c.at.st.Labels, made)
	return created(c.json.label(made)), nil
}

func listIssueLabels(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, notFound()
	}
	return ok(c.json.labelList(c.at.labels(pr))), nil
}

func addIssueLabels(c *call) (*answer, error)     { return changeLabels(c, false) }
func replaceIssueLabels(c *call) (*answer, error) { return changeLabels(c, true) }

// changeLabels takes ids or names, but not both. Unknown ones are silently dropped, and letter case counts.
func changeLabels(c *call, replace bool) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, notFound()
	}
	var in struct {
		Labels []any `json:"labels"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if c.at.access < writeAccess {
		return nil, forbidden("write permission is required")
	}
	ids, uniform := c.idsOf(in.Labels)
	if !uniform {
		return nil, refuse(http.StatusBadRequest, "labels should be an array of strings or integers")
	}
	before := c.at.labels(pr)
	if !replace {
		for _, l := range before {
			if !c.excludes(ids, l) {
				ids = append(ids, l.ID)
			}
		}
	}
	c.at.setLabels(pr, ids)
	if len(before) != len(c.at.labels(pr)) {
		c.at.touched(pr)
	}
	return ok(c.json.labelList(c.at.labels(pr))), nil
}

// excludes reports whether one of the new labels takes the place of an exclusive one.
func (c *call) excludes(ids []int64, old Label) bool {
	scope := func(l Label) string { return l.Name[:max(strings.LastIndexByte(l.Name, '/'), 0)] }
	return old.Exclusive && scope(old) != "" && slices.ContainsFunc(ids, func(id int64) bool {
		l, defined := c.at.st.labelByID(id)
		return defined && l.Exclusive && l.ID != old.ID && scope(l) == scope(old)
	})
}

// idsOf gives label ids for ids or for names, which stand for all labels of the name; false for a mixture.
func (c *call) idsOf(values []any) (ids []int64, uniform bool) {
	names := 0
	for _, value := range values {
		switch v := value.(type) {
		case float64:
			ids = append(ids, int64(v))
		case string:
			names++
			for _, l := range c.at.st.Labels {
				if l.Name == v {
					ids = append(ids, l.ID)
				}
			}
		default:
			return nil, false
		}
	}
	return ids, names == 0 || names == len(values)
}

type issueJSON struct {
	ID               int64          `json:"id"`
	URL              string         `json:"url"`
	HTMLURL          string         `json:"html_url"`
	Number           int            `json:"number"`
	User             *userJSON      `json:"user"`
	OriginalAuthor   string         `json:"original_author"`
	OriginalAuthorID int64          `json:"original_author_id"`
	Title            string         `json:"title"`
	Body             string         `json:"body"`
	Ref              string         `json:"ref"`
	Assets           []string       `json:"assets"`
	Labels           []labelJSON    `json:"labels"`
	Milestone        *string        `json:"milestone"`
	Assignee         *userJSON      `json:"assignee"`
	Assignees        []*userJSON    `json:"assignees"`
	State            string         `json:"state"`
	IsLocked         bool           `json:"is_locked"`
	Comments         int            `json:"comments"`
	CreatedAt        string         `json:"created_at"`
	UpdatedAt        string         `json:"updated_at"`
	ClosedAt         *string        `json:"closed_at"`
	DueDate          *string        `json:"due_date"`
	TimeEstimate     int            `json:"time_estimate"`
	PullRequest      map[string]any `json:"pull_request"`
	Repository       map[string]any `json:"repository"`
	PinOrder         int            `json:"pin_order"`
}

// issue shows a pull request as the issue that it also is.
func (j *rendering) issue(pr *memhost.PR) *issueJSON {
	known, where := j.at.pull(pr), j.pullPage(pr)
	out := &issueJSON{
		ID: known.id, URL: fmt.Sprintf("%s/issues/%d", j.at.api(), pr.Number), HTMLURL: where, Number: pr.Number,
		User: j.person(known.poster), Title: pr.Title, Body: pr.Body, Assets: []string{}, State: shownState(pr),
		Labels: j.labelList(j.at.labels(pr)), CreatedAt: stampTime(pr.CreatedAt), UpdatedAt: stampTime(j.at.updatedAt(pr)),
		ClosedAt: optionalTime(pr.ClosedAt),
		PullRequest: map[string]any{
			"merged": pr.State == gitprovider.StateMerged, "merged_at": nil, "draft": isDraft(pr), "html_url": where,
		},
		Repository: map[string]any{
			"id": j.at.st.id, "name": j.at.repo.Ref.Name, "owner": j.at.repo.Ref.Owner, "full_name": j.at.repo.Ref.String(),
		},
	}
	if pr.State == gitprovider.StateMerged {
		out.PullRequest["merged_at"] = optionalTime(pr.ClosedAt)
	}
	if len(known.assignees) > 0 {
		out.Assignees = j.strangers(known.assignees)
		out.Assignee = out.Assignees[0]
	}
	return out
}

type editIssueBody struct {
	Title     string          `json:"title"`
	Body      *string         `json:"body"`
	State     *string         `json:"state"`
	Assignee  string          `json:"assignee"`
	Assignees []string        `json:"assignees"`
	Ref       json.RawMessage `json:"ref"`
}

func editIssue(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, notFound()
	}
	var in editIssueBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := c.mayEdit(pr); err != nil {
		return nil, err
	}
	if login := c.at.unknown(append(slices.Clone(in.Assignees), in.Assignee)); login != "" {
		return nil, internalError(noSuchUser(login))
	}
	c.assign(pr, in.Assignee, in.Assignees)
	if err := c.edit(pr, in.Title, in.Body, in.State); err != nil {
		return nil, err
	}
	return created(c.json.issue(pr)), nil
}

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
