package fakegitea

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

type endJSON struct {
	Label  string    `json:"label"`
	Ref    string    `json:"ref"`
	SHA    string    `json:"sha"`
	RepoID int64     `json:"repo_id"`
	Repo   *repoJSON `json:"repo"`
}

type pullJSON struct {
	ID                  int64       `json:"id"`
	URL                 string      `json:"url"`
	Number              int         `json:"number"`
	User                *userJSON   `json:"user"`
	Title               string      `json:"title"`
	Body                string      `json:"body"`
	Labels              []labelJSON `json:"labels"`
	Milestone           *string     `json:"milestone"`
	Assignee            *userJSON   `json:"assignee"`
	Assignees           []*userJSON `json:"assignees"`
	RequestedReviewers  []*userJSON `json:"requested_reviewers"`
	RequestedTeams      []string    `json:"requested_reviewers_teams"`
	State               string      `json:"state"`
	Draft               bool        `json:"draft"`
	IsLocked            bool        `json:"is_locked"`
	Comments            int         `json:"comments"`
	ReviewComments      *int        `json:"review_comments,omitempty"`
	Additions           *int        `json:"additions,omitempty"`
	Deletions           *int        `json:"deletions,omitempty"`
	ChangedFiles        *int        `json:"changed_files,omitempty"`
	HTMLURL             string      `json:"html_url"`
	DiffURL             string      `json:"diff_url"`
	PatchURL            string      `json:"patch_url"`
	Mergeable           bool        `json:"mergeable"`
	Merged              bool        `json:"merged"`
	MergedAt            *string     `json:"merged_at"`
	MergeCommitSHA      *string     `json:"merge_commit_sha"`
	MergedBy            *userJSON   `json:"merged_by"`
	AllowMaintainerEdit bool        `json:"allow_maintainer_edit"`
	Base                endJSON     `json:"base"`
	Head                endJSON     `json:"head"`
	MergeBase           string      `json:"merge_base"`
	DueDate             *string     `json:"due_date"`
	CreatedAt           string      `json:"created_at"`
	UpdatedAt           string      `json:"updated_at"`
	ClosedAt            *string     `json:"closed_at"`
	PinOrder            int         `json:"pin_order"`
}

func (j *rendering) pullPage(pr *memhost.PR) string {
	return fmt.Sprintf("%s/pulls/%d", j.at.web(), pr.Number)
}

// render shows one pull request. read says whether this counts as looking at `mergeable`.
func (j *rendering) render(pr *memhost.PR, read bool) *pullJSON {
	out := j.summary(pr, read)
	if owner, branch := j.at.repo.HeadOf(pr); owner == j.at.repo.Ref.Owner && j.at.repo.Branches[branch] != "" {
		out.Head.SHA = j.at.repo.Branches[branch] // also of one that has ended
	}
	changes := j.at.changes(pr)
	additions, deletions := totals(changes)
	files := len(changes)
	out.Additions, out.Deletions, out.ChangedFiles = &additions, &deletions, &files
	out.Assignees, out.RequestedTeams = j.strangers(j.at.pull(pr).assignees), []string{}
	if len(out.Assignees) > 0 {
		out.Assignee = out.Assignees[0]
	}
	if out.Merged {
		out.MergedBy = j.s.stranger(Owner)
	}
	for _, people := range []*[]*userJSON{&out.Assignees, &out.RequestedReviewers} {
		if *people == nil {
			*people = []*userJSON{}
		}
	}
	return out
}

// summary shows a pull request as lists do: without counting changes, without who merged it, with people in the order
// of their names, and with null where there are none.
func (j *rendering) summary(pr *memhost.PR, read bool) *pullJSON {
	known, where := j.at.pull(pr), j.pullPage(pr)
	out := &pullJSON{
		ID: known.id, URL: where, Number: pr.Number, User: j.person(known.poster), Title: pr.Title, Body: pr.Body,
		Labels: j.labelList(j.at.labels(pr)), Assignees: j.strangers(slices.Sorted(slices.Values(known.assignees))),
		State: shownState(pr), Draft: isDraft(pr),
		HTMLURL: where, DiffURL: where + ".diff", PatchURL: where + ".patch", Mergeable: j.at.mergeable(pr, read),
		Base: j.end(pr.Base, pr.Base, j.at.repo.Branches[pr.Base]), Head: j.head(pr),
		MergeBase: j.at.mergeBase(pr), CreatedAt: stampTime(pr.CreatedAt), UpdatedAt: stampTime(j.at.updatedAt(pr)),
		ClosedAt: optionalTime(pr.ClosedAt),
	}
	if j.at.repo.Branches[pr.Branch] == "" {
		out.Head.Ref = pullRef(pr.Number)
	}
	out.Comments = len(pr.Comments)
	out.ReviewComments = j.reviewNumber(pr)
	if len(out.Assignees) > 0 {
		out.Assignee = out.Assignees[0]
	}
	var asked []string
	for _, request := range j.at.requests(pr) {
		asked = append(asked, request.login)
	}
	out.RequestedReviewers = j.strangers(asked)
	if merge := j.at.mergeCommit(pr); merge != "" {
		out.Merged, out.MergeCommitSHA, out.MergedAt = true, &merge, optionalTime(pr.ClosedAt)
	}
	return out
}

// reviewNumber returns the number of submitted reviews, if the server tells it.
func (j *rendering) reviewNumber(pr *memhost.PR) *int {
	n := 0
	for _, r := range pr.Reviews {
		if r.State != gitprovider.ReviewPending {
			n++
		}
	}
	told := j.at.st.Features.ReviewNumber
	if told == NumberNever || told == NumberUnlessZero && n == 0 {
		return nil
	}
	return &n
}

// shownState knows no merged: that is a closed one with merged set.
func shownState(pr *memhost.PR) string {
	if isOpen(pr) {
		return "open"
	}
	return "closed"
}

func (j *rendering) end(label, ref, commit string) endJSON {
	return endJSON{Label: label, Ref: ref, SHA: commit, RepoID: j.at.st.id, Repo: j.repo()}
}

// head returns the end of a pull request that is to be merged. The label of one from a fork does not name the fork.
func (j *rendering) head(pr *memhost.PR) endJSON {
	owner, branch := j.at.repo.HeadOf(pr)
	out := j.end(branch, branch, pr.HeadCommit)
	if owner != j.at.repo.Ref.Owner {
		fork := j.repo()
		fork.ID, fork.Owner, fork.FullName, fork.Fork = j.at.st.id+1_000_000, j.s.acquaintance(owner), owner+"/"+
			j.at.repo.Ref.Name, true
		fork.Permissions = permissionsJSON{Pull: true}
		out.RepoID, out.Repo = fork.ID, fork
	}
	return out
}

func (j *rendering) strangers(logins []string) []*userJSON {
	var list []*userJSON // null when empty
	for _, login := range logins {
		list = append(list, j.s.stranger(login))
	}
	return list
}

func (r *repository) changes(pr *memhost.PR) []fileDiff {
	return diff(r.repo.Tree(r.mergeBase(pr)), r.repo.Tree(pr.HeadCommit))
}

// numbered finds the pull request that the request is about, or nil.
func (c *call) numbered() *memhost.PR {
	index, err := strconv.Atoi(c.params["index"])
	if err != nil {
		return nil
	}
	return c.at.repo.PR(index)
}

func getPull(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, notFound()
	}
	out := c.json.render(pr, true)
	if known := c.at.pull(pr); known.late > 0 && c.at.repo.Branches[pr.Branch] == "" {
		known.late--
	}
	return ok(out), nil
}

// findPull finds the open pull request with a base and a head.
func findPull(c *call) (*answer, error) {
	for _, pr := range c.at.repo.PRs {
		if isOpen(pr) && pr.Base == c.params["base"] && pr.Branch == c.params["head"] {
			return ok(c.json.render(pr, false)), nil
		}
	}
	return nil, notFound()
}

type pullFileJSON struct {
	Filename         string `json:"filename"`
	PreviousFilename string `json:"previous_filename,omitempty"`
	Status           string `json:"status"`
	Additions        int    `json:"additions"`
	Deletions        int    `json:"deletions"`
	Changes          int    `json:"changes"`
	HTMLURL          string `json:"html_url"`
	ContentsURL      string `json:"contents_url"`
	RawURL           string `json:"raw_url"`
}

func listFiles(c *call) (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, notFound()
	}
	all, p := c.at.changes(pr), pageOf(c.query)
	list := []pullFileJSON{}
	for _, d := range cut(all, p) {
		path, status := escapePath(d.path), "changed"
		switch {
		case d.added:
			status = "added"
		case d.removed:
			status = "deleted"
		case d.oldPath != "":
			status = "renamed"
		}
		list = append(list, pullFileJSON{
			Filename: d.path, PreviousFilename: d.oldPath, Status: status, Additions: d.additions,
			Deletions: d.deletions, Changes: d.additions + d.deletions,
			HTMLURL:     c.at.web() + "/src/commit/" + pr.HeadCommit + "/" + path,
			ContentsURL: c.at.api() + "/contents/" + path + "?ref=" + pr.HeadCommit,
			RawURL:      c.at.web() + "/raw/commit/" + pr.HeadCommit + "/" + path,
		})
	}
	pages := (len(all) + p.limit - 1) / p.limit
	return ok(list).counted(len(all)).with("Link", c.link(p, len(all))).with("X-Page", strconv.Itoa(p.number)).
		with("X-PerPage", strconv.Itoa(p.limit)).with("X-PageCount", strconv.Itoa(pages)).
		with("X-HasMore", strconv.FormatBool(p.number < pages)), nil
}

// noPull returns the refusal by which the routes about reviews say that there is no such pull request.
func (c *call) noPull() *refusal {
	return &refusal{status: http.StatusNotFound, message: "GetPullRequestByIndex", detailed: true, details: []string{
		fmt.Sprintf("pull request does not exist [id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: %d, head_branch: , "+
			"base_branch: ]", c.at.st.id),
	}}
}

// wantedState filters by what a client asks for. Anything unknown means all.
func wantedState(asked string, state gitprovider.State) bool {
	switch asked {
	case "", "open":
		return state == gitprovider.StateOpen
	case "closed":
		return state != gitprovider.StateOpen
	default:
		return true
	}
}

// listPulls filters labels by id only. A pull request with several of the labels asked for is there, and counted,
// several times.
func listPulls(c *call) (*answer, error) {
	var wanted []int64
	for _, value := range c.query["labels"] {
		if value == "" {
			continue
		}
		id, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, internalError(`strconv.ParseInt: parsing "` + value + `": invalid syntax`)
		}
		wanted = append(wanted, id)
	}
	if poster := c.query.Get("poster"); poster != "" && !c.s.knows(poster) {
		return nil, refuse(http.StatusBadRequest, noSuchUser(poster))
	}
	var all []*memhost.PR
	for _, pr := range c.at.sorted(c.query.Get("sort")) {
		for range c.times(pr, wanted) {
			all = append(all, pr)
		}
	}
	p := pageOf(c.query)
	list := []*pullJSON{}
	for _, pr := range cut(all, p) {
		shown := c.json.summary(pr, false)
		shown.Head.SHA = c.at.pull(pr).inLists.show(shown.Head.SHA)
		list = append(list, shown)
	}
	return ok(list).counted(len(all)).with("Link", c.link(p, len(all))), nil
}

// times returns how often a pull request appears in the list.
func (c *call) times(pr *memhost.PR, wanted []int64) int {
	base, poster := c.query.Get("base_branch"), c.query.Get("poster")
	switch {
	case !wantedState(c.query.Get("state"), pr.State),
		base != "" && base != pr.Base,
		poster != "" && poster != c.at.pull(pr).poster,
		number(c.query, "milestone") > 0: // there are no milestones
		return 0
	case len(wanted) == 0:
		return 1
	}
	count := 0
	for _, label := range c.at.labels(pr) {
		if slices.Contains(wanted, label.ID) {
			count++
		}
	}
	return count
}

// sorted orders the pull requests. Anything unknown means the newest first.
func (r *repository) sorted(by string) []*memhost.PR {
	list := slices.Clone(r.repo.PRs)
	slices.SortFunc(list, func(a, b *memhost.PR) int {
		newest := cmp.Compare(b.Number, a.Number)
		switch by {
		case "oldest":
			return -newest
		case "recentupdate":
			return cmp.Or(r.updatedAt(b).Compare(r.updatedAt(a)), newest)
		case "leastupdate":
			return cmp.Or(r.updatedAt(a).Compare(r.updatedAt(b)), newest)
		default:
			return newest
		}
	})
	return list
}

// listIssues knows pull requests only. Labels are names here, of which all must be there; unknown ones are dropped from
// the filter, so that a filter of unknown ones only lists everything.
func listIssues(c *call) (*answer, error) {
	var wanted []string
	for _, name := range strings.Split(c.query.Get("labels"), ",") {
		if _, defined := c.at.st.labelNamed(name); defined {
			wanted = append(wanted, name)
		}
	}
	var all []*memhost.PR
	for _, pr := range c.at.sorted("") {
		missing := slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(pr.Labels, name) })
		if !missing && c.query.Get("type") != "issues" && wantedState(c.query.Get("state"), pr.State) {
			all = append(all, pr)
		}
	}
	p := pageOf(c.query)
	list := []*issueJSON{}
	for _, pr := range cut(all, p) {
		list = append(list, c.json.issue(pr))
	}
	return ok(list).counted(len(all)).with("Link", c.link(p, len(all))), nil
}
