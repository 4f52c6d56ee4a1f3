package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// createPullRequestOption is the body of POST pulls, named as the server names it in its refusals.
type createPullRequestOption struct {
	Head          string   `json:"head"`
	Base          string   `json:"base"`
	Title         string   `json:"title"`
	Body          string   `json:"body"`
	Labels        []int64  `json:"labels"`
	Assignee      string   `json:"assignee"`
	Assignees     []string `json:"assignees"`
	Reviewers     []string `json:"reviewers"`
	TeamReviewers []string `json:"team_reviewers"`
}

// openPull refuses a second open pull request for the same head and base, if it sees the first; see
// Settings.LaxParallel. That there is nothing to merge does not bother it.
func openPull(c *call) (*answer, error) {
	var in createPullRequestOption
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := required("Head", in.Head, "Base", in.Base, "Title", in.Title); err != nil {
		return nil, err
	}
	if err := c.at.inUse(); err != nil {
		return nil, err
	}
	if len(c.at.repo.Branches) == 0 {
		return nil, notFound()
	}
	if c.at.access < writeAccess {
		return nil, forbidden("user must be a collaborator")
	}
	in.Head = strings.TrimPrefix(in.Head, c.at.repo.Ref.Owner+":")
	switch {
	case c.at.repo.Branches[in.Head] == "", c.at.repo.Branches[in.Base] == "":
		return nil, notFound()
	case in.Head == in.Base:
		return nil, unprocessable("Invalid PullRequest: There are no changes between the head and the base")
	}
	if c.at.st.Delays.LaxParallel > 0 {
		c.at.st.Delays.LaxParallel--
	} else if err := c.at.duplicate(in); err != nil {
		return nil, err
	}
	if login := c.at.unknown(append(slices.Clone(in.Assignees), in.Assignee)); login != "" {
		return nil, noAssignee(login)
	}
	if login := c.at.unknown(in.Reviewers); login != "" {
		return nil, noReviewer(login)
	}
	pr := c.s.host.Open(c.at.repo, gitprovider.PullRequestSpec{Head: in.Head, Base: in.Base, Title: in.Title,
		Body: in.Body})
	known := c.at.pull(pr)
	known.poster = c.viewer
	c.assign(pr, in.Assignee, in.Assignees)
	c.at.setLabels(pr, in.Labels)
	for _, login := range in.Reviewers {
		c.at.request(pr, login)
	}
	out := c.json.render(pr, false)
	slices.SortFunc(out.Labels, func(a, b labelJSON) int { return int(a.ID - b.ID) })
	return created(out), nil
}

// unknown returns the first name without an account, or "".
func (r *repository) unknown(logins []string) string {
	for _, login := range logins {
		if login != "" && !r.s.knows(login) {
			return login
		}
	}
	return ""
}

func noSuchUser(login string) string { return "user does not exist [uid: 0, name: " + login + "]" }

func noAssignee(login string) *refusal {
	return unprocessable("Assignee does not exist: [name: " + noSuchUser(login) + "]")
}

func noReviewer(login string) *refusal {
	return &refusal{status: http.StatusNotFound, message: "User '" + login + "' not exist", detailed: true}
}

func (r *repository) duplicate(in createPullRequestOption) error {
	for _, pr := range r.repo.PRs {
		if isOpen(pr) && pr.Branch == in.Head && pr.Base == in.Base {
			id := r.pull(pr).id
			return refuse(http.StatusConflict, fmt.Sprintf("pull request already exists for these targets [id: %d, "+
				"issue_id: %d, head_repo_id: %d, base_repo_id: %d, head_branch: %s, base_branch: %s]",
				id, id, r.st.id, r.st.id, in.Head, in.Base))
		}
	}
	return nil
}

type editPullBody struct {
	Title     string   `json:"title"`
	Body      *string  `json:"body"`
	Base      string   `json:"base"`
	State     *string  `json:"state"`
	Assignee  string   `json:"assignee"`
	Assignees []string `json:"assignees"`
	Labels    []int64  `json:"labels"`
}

// mayEdit refuses, with an empty answer, users who neither opened the pull request nor may write.
func (c *call) mayEdit(pr *memhost.PR) error {
	if c.at.access < writeAccess && (c.at.pull(pr).poster != c.viewer || c.at.st.ReadOnly) {
		return silentlyForbidden()
	}
	return nil
}

func editPull(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, notFound()
	}
	var in editPullBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := c.mayEdit(pr); err != nil {
		return nil, err
	}
	if login := c.at.unknown(append(slices.Clone(in.Assignees), in.Assignee)); login != "" {
		return nil, noAssignee(login)
	}
	if err := c.edit(pr, in.Title, in.Body, in.State); err != nil {
		return nil, err
	}
	if in.Base != "" && in.Base != pr.Base {
		if c.at.repo.Branches[in.Base] == "" {
			return nil, refuse(http.StatusNotFound, "new base '"+in.Base+"' not exist")
		}
		pr.Base = in.Base
	}
	if in.Labels != nil {
		c.at.setLabels(pr, in.Labels)
	}
	c.assign(pr, in.Assignee, in.Assignees)
	c.at.settle()
	return created(c.json.render(pr, false)), nil
}

// edit is shared by the routes for issues and for pull requests. An empty title changes nothing.
func (c *call) edit(pr *memhost.PR, title string, body, state *string) error {
	if state != nil && *state != "open" && *state != "closed" {
		return refuse(http.StatusPreconditionFailed, "unknown state: "+*state)
	}
	if title != "" {
		pr.Title = title
	}
	if body != nil {
		pr.Body = *body
	}
	c.at.touched(pr)
	switch {
	case state == nil, *state == shownState(pr), pr.State == gitprovider.StateMerged:
	case *state == "closed":
		c.at.close(pr)
	default:
		pr.State, pr.ClosedAt = gitprovider.StateOpen, time.Time{}
	}
	return nil
}

// assign replaces the assignees, unless none are given. Those that stay come first.
func (c *call) assign(pr *memhost.PR, one string, several []string) {
	if one == "" && several == nil {
		return
	}
	wanted := slices.Clone(several)
	if one != "" {
		wanted = append(wanted, one)
	}
	known := c.at.pull(pr)
	known.assignees = slices.DeleteFunc(known.assignees,
		func(login string) bool { return !slices.Contains(wanted, login) })
	for _, login := range wanted {
		if !slices.Contains(known.assignees, login) {
			known.assignees = append(known.assignees, login)
		}
	}
}
