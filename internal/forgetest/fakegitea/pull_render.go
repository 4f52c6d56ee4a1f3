package fakegitea

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
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
	ReviewComments      int         `json:"review_comments"`
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

func (c *call) pullPage(pr *memhost.PR) string { return fmt.Sprintf("%s/pulls/%d", c.web(), pr.Number) }

// render shows one pull request. read says whether this counts as looking at `mergeable`.
func (c *call) render(pr *memhost.PR, read bool) *pullJSON {
	out := c.summary(pr, read)
	changes := c.changes(pr)
	additions, deletions := totals(changes)
	files := len(changes)
	out.Additions, out.Deletions, out.ChangedFiles = &additions, &deletions, &files
	out.Assignees, out.RequestedTeams = c.strangers(c.pull(pr).assignees), []string{}
	if len(out.Assignees) > 0 {
		out.Assignee = out.Assignees[0]
	}
	if out.Merged {
		out.MergedBy = c.s.stranger(Owner)
	}
	for _, people := range []*[]*userJSON{&out.Assignees, &out.RequestedReviewers} {
		if *people == nil {
			*people = []*userJSON{}
		}
	}
	return out
}

// summary shows a pull request as lists do: without counting changes, without who merged it, with people in the
// order of their names, and with null for nobody.
func (c *call) summary(pr *memhost.PR, read bool) *pullJSON {
	known, where := c.pull(pr), c.pullPage(pr)
	out := &pullJSON{
		ID: known.id, URL: where, Number: pr.Number, User: c.person(known.poster), Title: pr.Title, Body: pr.Body,
		Labels: c.labelList(c.labels(pr)), Assignees: c.strangers(slices.Sorted(slices.Values(known.assignees))),
		State: shownState(pr), Draft: isDraft(pr),
		HTMLURL: where, DiffURL: where + ".diff", PatchURL: where + ".patch", Mergeable: c.mergeable(pr, read),
		Base: c.end(pr.Base, pr.Base, c.repo.Branches[pr.Base]), Head: c.head(pr),
		MergeBase: c.mergeBase(pr), CreatedAt: stampTime(pr.CreatedAt), UpdatedAt: stampTime(c.updatedAt(pr)),
		ClosedAt: optionalTime(pr.ClosedAt),
	}
	if c.repo.Branches[pr.Branch] == "" {
		out.Head.Ref = pullRef(pr.Number)
	}
	if len(out.Assignees) > 0 {
		out.Assignee = out.Assignees[0]
	}
	var asked []string
	for _, request := range c.requests(pr) {
		asked = append(asked, request.login)
	}
	out.RequestedReviewers = c.strangers(asked)
	if merge := c.mergeCommit(pr); merge != "" {
		out.Merged, out.MergeCommitSHA, out.MergedAt = true, &merge, optionalTime(pr.ClosedAt)
	}
	return out
}

// shownState knows no merged: that is a closed one with merged set.
func shownState(pr *memhost.PR) string {
	if isOpen(pr) {
		return "open"
	}
	return "closed"
}

func (c *call) end(label, ref, commit string) endJSON {
	return endJSON{Label: label, Ref: ref, SHA: commit, RepoID: c.st.id, Repo: c.repository()}
}

// head is the end of a pull request that is to be merged. The label of one from a fork does not name the fork.
func (c *call) head(pr *memhost.PR) endJSON {
	owner, branch := c.repo.HeadOf(pr)
	out := c.end(branch, branch, pr.HeadCommit)
	if owner != c.repo.Ref.Owner {
		fork := c.repository()
		fork.ID, fork.Owner, fork.FullName, fork.Fork = c.st.id+1_000_000, c.s.acquaintance(owner), owner+"/"+c.repo.Ref.Name, true
		fork.Permissions = permissionsJSON{Pull: true}
		out.RepoID, out.Repo = fork.ID, fork
	}
	return out
}

func (c *call) strangers(logins []string) []*userJSON {
	var list []*userJSON // null when there is nobody
	for _, login := range logins {
		list = append(list, c.s.stranger(login))
	}
	return list
}

func (c *call) changes(pr *memhost.PR) []fileDiff {
	return diff(c.repo.Tree(c.mergeBase(pr)), c.repo.Tree(pr.HeadCommit))
}

// numbered finds the pull request that the request is about, or nil.
func (c *call) numbered() *memhost.PR {
	index, err := strconv.Atoi(c.params["index"])
	if err != nil {
		return nil
	}
	return c.repo.PR(index)
}

func (c *call) getPull() (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, notFound()
	}
	out := c.render(pr, true)
	if known := c.pull(pr); known.late > 0 && c.repo.Branches[pr.Branch] == "" {
		known.late--
	}
	return ok(out), nil
}

// findPull finds the open pull request with a base and a head.
func (c *call) findPull() (*answer, error) {
	for _, pr := range c.repo.PRs {
		if isOpen(pr) && pr.Base == c.params["base"] && pr.Branch == c.params["head"] {
			return ok(c.render(pr, false)), nil
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

func (c *call) listFiles() (*answer, error) {
	pr := c.numbered()
	if pr == nil {
		return nil, notFound()
	}
	all, p := c.changes(pr), pageOf(c.query)
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
			HTMLURL:     c.web() + "/src/commit/" + pr.HeadCommit + "/" + path,
			ContentsURL: c.api() + "/contents/" + path + "?ref=" + pr.HeadCommit,
			RawURL:      c.web() + "/raw/commit/" + pr.HeadCommit + "/" + path,
		})
	}
	pages := (len(all) + p.limit - 1) / p.limit
	return ok(list).counted(len(all)).with("Link", c.link(p, len(all))).with("X-Page", itoa(p.number)).
		with("X-PerPage", itoa(p.limit)).with("X-PageCount", itoa(pages)).
		with("X-HasMore", strconv.FormatBool(p.number < pages)), nil
}

// noPull is how the routes about reviews say that there is no such pull request.
func (c *call) noPull() *refusal {
	return &refusal{status: http.StatusNotFound, message: "GetPullRequestByIndex", detailed: true, details: []string{
		fmt.Sprintf("pull request does not exist [id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: %d, head_branch: , "+
			"base_branch: ]", c.st.id),
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
