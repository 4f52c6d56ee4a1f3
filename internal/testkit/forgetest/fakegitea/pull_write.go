package fakegitea

import (
	"cmp"
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

func pullRef(number int) string { return fmt.Sprintf("refs/pull/%d/head", number) }

// pull returns the server's state of a pull request. Ids are assigned in the order of opening.
func (r *repository) pull(pr *memhost.PR) *prState {
	for _, each := range r.repo.PRs {
		if r.st.prs[each.Number] == nil {
			r.st.prs[each.Number] = &prState{
				id: r.s.next("pull"), poster: posterOf(each), updated: each.CreatedAt, base: r.repo.Branches[each.Base],
			}
		}
	}
	return r.st.prs[pr.Number]
}

// posterOf returns the author of a pull request that was opened without a request to the server.
func posterOf(pr *memhost.PR) string {
	if pr.Author != "" {
		return pr.Author
	}
	return Owner
}

// settle lets the server notice what happened to branches: a pull request follows its head, is closed when that is
// gone, and has to be checked again for conflicts when its base moved.
func (r *repository) settle() {
	for _, pr := range r.repo.PRs {
		known := r.pull(pr)
		if !isOpen(pr) {
			continue
		}
		tip := r.repo.Branches[pr.Branch]
		if tip == "" && known.late > 0 {
			continue
		}
		if tip == "" {
			r.close(pr)
			continue
		}
		if base := r.repo.Branches[pr.Base]; base != known.base {
			set := r.st.Delays.MergeableReads
			shown := r.mergeable(pr, false)
			known.base, known.merge = base, mergeState{shown: shown, stale: set.Stale, checking: set.Checking}
		}
		if tip != pr.HeadCommit {
			r.reviews(pr) // are of the former head
			known.inReviews = formerHead{r.st.Delays.LateStale, pr.HeadCommit}
			known.inLists = formerHead{r.st.Delays.LateHead, pr.HeadCommit}
			pr.HeadCommit = tip
			pr.Paths = r.repo.Changed(pr.Base, tip)
			known.updated = r.s.host.Now()
		}
	}
}

func (r *repository) close(pr *memhost.PR) {
	pr.State, pr.ClosedAt = gitprovider.StateClosed, r.s.host.Now()
	r.pull(pr).updated = pr.ClosedAt
}

// touched notes that somebody changed something about a pull request.
func (r *repository) touched(pr *memhost.PR) { r.pull(pr).updated = r.s.host.Now() }

// updatedAt returns the time of the last event of a pull request, reviews and comments included.
func (r *repository) updatedAt(pr *memhost.PR) time.Time {
	last := r.pull(pr).updated
	if pr.ClosedAt.After(last) {
		last = pr.ClosedAt
	}
	for _, r := range pr.Reviews {
		if r.SubmittedAt.After(last) {
			last = r.SubmittedAt
		}
	}
	for _, c := range pr.Comments {
		if c.At.After(last) {
			last = c.At
		}
	}
	return last
}

// mergeable returns the value that the server shows; see MergeableReads. It means nothing once the pull request is not
// open.
func (r *repository) mergeable(pr *memhost.PR, read bool) bool {
	known := r.pull(pr)
	switch {
	case isOpen(pr) && known.merge.stale > 0:
		if read {
			known.merge.stale--
		}
		return known.merge.shown
	case isOpen(pr) && known.merge.checking > 0:
		if read {
			known.merge.checking--
		}
		return false
	case isDraft(pr), r.repo.Commits[known.base] == nil:
		return false
	}
	_, fits := r.repo.Merge(known.base, pr.HeadCommit)
	return fits
}

// isDraft goes by the title, as the server does.
func isDraft(pr *memhost.PR) bool {
	title := strings.ToUpper(pr.Title)
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// mergeCommit returns the commit that merged a pull request, "" if it was not merged.
func (r *repository) mergeCommit(pr *memhost.PR) string {
	if pr.State != gitprovider.StateMerged {
		return ""
	}
	for id, commit := range r.repo.Commits {
		if len(commit.Parents) == 2 && commit.Parents[1] == pr.HeadCommit && r.repo.Contains(r.repo.Branches[pr.Base], id) {
			return id
		}
	}
	return r.repo.Branches[pr.Base]
}

// mergeBase returns the commit where the head left the base: before the merge, if it was merged.
func (r *repository) mergeBase(pr *memhost.PR) string {
	base := r.repo.Branches[pr.Base]
	if merge := r.repo.Commits[r.mergeCommit(pr)]; merge != nil && len(merge.Parents) > 0 {
		base = merge.Parents[0]
	}
	return r.repo.MergeBase(base, pr.HeadCommit)
}

// labels gives the labels of a pull request, by name. The host knows them by name only: a name that the server does not
// know as the pull request's is the first label of that name, which is defined if it is not.
func (r *repository) labels(pr *memhost.PR) []Label {
	known := r.pull(pr)
	var out []Label
	for _, id := range known.labels {
		if label, defined := r.st.labelByID(id); defined && slices.Contains(pr.Labels, label.Name) {
			out = append(out, label)
		}
	}
	for _, name := range pr.Labels {
		if slices.ContainsFunc(out, func(l Label) bool { return l.Name == name }) {
			continue
		}
		label, defined := r.st.labelNamed(name)
		if !defined {
			label = Label{ID: r.s.next("label"), Name: name, Color: "ededed"}
			r.st.Labels = append(r.st.Labels, label)
		}
		out = append(out, label)
	}
	known.labels = nil
	for _, label := range out {
		known.labels = append(known.labels, label.ID)
	}
	slices.SortFunc(out, func(a, b Label) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out
}

// setLabels replaces the labels of a pull request. Ids that the repository does not define are silently dropped.
func (r *repository) setLabels(pr *memhost.PR, ids []int64) {
	known := r.pull(pr)
	known.labels, pr.Labels = nil, nil
	for _, id := range ids {
		label, defined := r.st.labelByID(id)
		if defined && !slices.Contains(known.labels, id) {
			known.labels = append(known.labels, id)
			pr.AddLabels(label.Name)
		}
	}
}
