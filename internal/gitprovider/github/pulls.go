package github

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// pulls reads pull requests.
type pulls struct {
	api   *api
	files changedFiles
}

// pullList says which pull requests of a repository are wanted.
type pullList struct {
	arguments string            // of pullRequests: filter and order
	strings   map[string]string // the string variables in arguments
	size      int               // of a page
	files     bool              // whether the changed files come along
	end       time.Time         // the list, newest update first, ends before this time; zero: it is read to its end
}

type pullConnection = connection[pullNode]

// smallPage is the size of a page of a query that was too much for GitHub before.
const smallPage = 25

// smaller returns the list in a query that costs GitHub little: short pages without files.
func (l pullList) smaller() pullList {
	l.files, l.size = false, min(l.size, smallPage)
	return l
}

// isSmall reports whether smaller changes nothing.
func (l pullList) isSmall() bool { return !l.files && l.size <= smallPage }

// tooMuch reports whether a query was too much for GitHub.
func tooMuch(err error) bool { return errors.Is(err, errGaveUp{}) }

func openPulls() pullList {
	return pullList{arguments: "states: [OPEN], orderBy: {field: CREATED_AT, direction: ASC}", size: pageSize}
}

func labelledPulls(label string) pullList {
	list := openPulls()
	list.arguments += ", labels: [$label]"
	list.strings = map[string]string{"label": label}
	return list
}

// pageSelection returns the selection of one page. after is the argument that names its cursor.
func (l pullList) pageSelection(alias string, size int, after string) string {
	nodes := "...pull"
	if l.files {
		nodes += " ...changed"
	}
	return alias + ": pullRequests(" + l.arguments + ", first: " + strconv.Itoa(size) + after +
		") { pageInfo { hasNextPage endCursor } nodes { " + nodes + " } }"
}

// reachesEnd reports whether a page reaches behind the list's end.
func (l pullList) reachesEnd(at *pullConnection) bool {
	last := len(at.Nodes) - 1
	return !l.end.IsZero() && last >= 0 && at.Nodes[last] != nil && at.Nodes[last].UpdatedAt.Before(l.end)
}

// query asks for one page of the list; cursor "" for the first.
func (l pullList) query(repo gitprovider.RepoRef, cursor string) *query {
	q := newQuery(repo)
	for name, value := range l.strings {
		q.textVariable(name, value)
	}
	q.selectField(l.pageSelection("pulls", l.size, q.cursorArgument(cursor)))
	q.fragment(pullFragment)
	if l.files {
		q.fragment(changedFragment)
	}
	return q
}

// pullPage reads one page of the list, which it makes smaller if that is too much for GitHub.
func (p pulls) pullPage(ctx context.Context, repo gitprovider.RepoRef, list *pullList,
	cursor string) (*pullConnection, error) {
	from, err := queryRepository[struct{ Pulls *pullConnection }](ctx, p.api, list.query(repo, cursor), needPullsRead)
	if tooMuch(err) && !list.isSmall() {
		*list = list.smaller()
		return p.pullPage(ctx, repo, list, cursor)
	}
	if err != nil {
		return nil, err
	}
	if from.Pulls == nil {
		return nil, notShown("pull requests", repo)
	}
	return from.Pulls, nil
}

// readOn reads the pages after the first one, and returns the nodes of all. What moves within the order while it is
// read may appear twice.
func (p pulls) readOn(ctx context.Context, repo gitprovider.RepoRef, list pullList, first *pullConnection) ([]*pullNode,
	error) {
	all, err := collectPages(first, func(last *pullConnection) (*pullConnection, error) {
		if list.reachesEnd(last) {
			return nil, nil
		}
		return p.pullPage(ctx, repo, &list, last.PageInfo.EndCursor)
	})
	seen := map[int]bool{}
	return slices.DeleteFunc(all, func(n *pullNode) bool {
		twice := seen[n.Number]
		seen[n.Number] = true
		return twice
	}), err
}

// openOurs gives the open pull requests that may be ours and have a number below the given one.
func (p pulls) openOurs(ctx context.Context, repo gitprovider.RepoRef, below int) ([]gitprovider.PullRequest, error) {
	list := openPulls()
	first, err := p.pullPage(ctx, repo, &list, "")
	if err != nil {
		return nil, err
	}
	all, err := p.readOn(ctx, repo, list, first)
	if err != nil {
		return nil, err
	}
	return p.files.convert(ctx, repo, slices.DeleteFunc(all, func(n *pullNode) bool {
		return n.Number >= below || !gitprovider.MayBeOurs(n.pullRequest())
	}))
}

// byHead finds the newest pull request of a branch. A fork's branch of the same name is another branch.
func (p pulls) byHead(ctx context.Context, repo gitprovider.RepoRef, branch string) (*gitprovider.PullRequest, error) {
	return p.first(ctx, repo, pullList{
		arguments: "headRefName: $head, orderBy: {field: CREATED_AT, direction: DESC}",
		strings:   map[string]string{"head": branch},
	})
}

// openFor finds the open pull request for a head and a base.
func (p pulls) openFor(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitprovider.PullRequest, error) {
	return p.first(ctx, spec.Repo, pullList{
		arguments: "states: [OPEN], headRefName: $head, baseRefName: $base, orderBy: {field: CREATED_AT, direction: DESC}",
		strings:   map[string]string{"head": spec.Head, "base": spec.Base},
	})
}

// findPage is the number of pull requests of one branch name per query; more than a few come only from forks.
const findPage = 10

// first gives the first pull request of the list whose head is in the repository itself, or nil.
func (p pulls) first(ctx context.Context, repo gitprovider.RepoRef, list pullList) (*gitprovider.PullRequest, error) {
	list.size, list.files = findPage, true
	for cursor := ""; ; {
		at, err := p.pullPage(ctx, repo, &list, cursor)
		if err != nil {
			return nil, err
		}
		isOwn := func(n *pullNode) bool { return n != nil && !n.IsCrossRepository }
		if i := slices.IndexFunc(at.Nodes, isOwn); i >= 0 {
			prs, err := p.files.convert(ctx, repo, at.Nodes[i:i+1])
			if err != nil {
				return nil, err
			}
			return &prs[0], nil
		}
		if cursor = at.PageInfo.EndCursor; !at.PageInfo.HasNextPage || cursor == "" {
			return nil, nil
		}
	}
}

// one reads fields of one pull request into out. What is below the field hidden may be forbidden, and is null then.
func (p pulls) one(ctx context.Context, repo gitprovider.RepoRef, number int, q *query, fields, hidden string,
	out any) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	q.variable("number", "Int!", number)
	q.selectField("pullRequest(number: $number) { " + fields + " }")
	q.tolerate = func(e graphError) bool { return e.Type == "FORBIDDEN" && hidden != "" && e.under(hidden) }
	var from *struct{ PullRequest json.RawMessage }
	looked := false
	unknown := func(err error) bool {
		if r := asRefusal(err); r != nil && r.says("to a pullrequest") && !looked &&
			!p.api.fresh.has(pullObject(repo, number)) {
			looked = true
			p.noteNewest(ctx, repo)
		}
		return pullUnknown(err)
	}
	err := p.api.fresh.waitFor(ctx, pullObject(repo, number), pullWords(number), unknown, func() (err error) {
		from, err = queryRepository[struct{ PullRequest json.RawMessage }](ctx, p.api, q, needPullsRead)
		return err
	})
	if r := asRefusal(err); r != nil && r.kind == "NOT_FOUND" && r.fault.Code == fault.NotFound && r.says("pullrequest") {
		return forge.NoPullRequest(repo, number)
	}
	switch {
	case err != nil:
		return err
	case isNull(from.PullRequest):
		return forge.NoPullRequest(repo, number)
	}
	return decodeJSON(from.PullRequest, out)
}

// noteNewest notes the newest pull requests that are new: another process may have opened the one that is asked for.
// The list may show it before it can be asked for by its number. Failures say nothing.
func (p pulls) noteNewest(ctx context.Context, repo gitprovider.RepoRef) {
	q := newQuery(repo)
	q.selectField("newest: pullRequests(first: " + strconv.Itoa(findPage) + ", orderBy: {field: CREATED_AT, direction: DESC}) { " +
		"nodes { number createdAt isCrossRepository headRefName } }")
	from, err := queryRepository[struct{ Newest *pullConnection }](ctx, p.api, q, needPullsRead)
	if err != nil || from.Newest == nil {
		return
	}
	for _, n := range from.Newest.Nodes {
		if n != nil {
			p.api.fresh.addPull(repo, n)
		}
	}
}

// withdraw looks, and then closes and writes the body in one request.
func (p pulls) withdraw(ctx context.Context, repo gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	q := newQuery(repo)
	q.fragment(pullFragment)
	var n pullNode
	if err := p.one(ctx, repo, w.Number, q, "...pull", "", &n); err != nil {
		return err
	}
	fields, err := forge.WithdrawalFields(w, n.pullRequest())
	if err != nil {
		return err
	}
	_, err = p.api.changePull(ctx, repo, w.Number, fields)
	return err
}

// close looks, and then closes and writes the body in one request.
func (p pulls) close(ctx context.Context, repo gitprovider.RepoRef, c gitprovider.Closing) (gitprovider.State, error) {
	q := newQuery(repo)
	q.fragment(pullFragment)
	var n pullNode
	if err := p.one(ctx, repo, c.Number, q, "...pull", "", &n); err != nil {
		return "", err
	}
	if ended, err := c.Check(n.pullRequest()); err != nil || ended != "" {
		return ended, err
	}
	return p.api.changePull(ctx, repo, c.Number, forge.ClosingFields(c))
}

func notShown(what string, repo gitprovider.RepoRef) error {
	return fault.New(fault.UpstreamError, "GitHub did not show the %s of %s; try again later", what, repo)
}

// pullFragment selects the fields of a pull request.
const pullFragment = `
fragment pull on PullRequest {
  id number title body url state isCrossRepository headRefName headRefOid headRef { target { oid } } baseRefName
  createdAt updatedAt closedAt mergedAt
  author { login } headRepository { owner { login } } repository { databaseId isArchived isLocked isDisabled }
  labels(first: 100) { nodes { name } }
}
`

// changedFragment is read only where it is needed: GitHub has to compare commits for it.
const changedFragment = `
fragment changed on PullRequest { files(first: 100) { pageInfo { hasNextPage } nodes { path changeType } } }
`

// userNode is an account; nil if it is gone. Kind is "" where it was not asked for: User, Bot and others. A bot may
// have the name of a person.
type userNode struct {
	Login string
	Kind  string `json:"__typename"`
}

func (p userNode) isBot() bool { return p.Kind == "Bot" }

// pullNode is a pull request as GraphQL answers it.
type pullNode struct {
	ID                string
	Number            int
	Title, Body, URL  string
	State             string
	IsCrossRepository bool
	HeadRefName       string
	HeadRefOid        string
	HeadRef           *refNode // nil if the branch is gone
	BaseRefName       string
	CreatedAt         time.Time
	UpdatedAt         time.Time
	ClosedAt          *time.Time
	MergedAt          *time.Time
	Author            *userNode
	HeadRepository    *struct{ Owner userNode }
	Repository        struct {
		DatabaseID                       int64
		IsArchived, IsLocked, IsDisabled bool
	}
	Labels *labelList
	Files  *struct {
		PageInfo pageInfo
		Nodes    []struct{ Path, ChangeType string }
	}
}

// repoID returns a repository's database id in the port's terms. It stays, where GitHub has changed the form of node
// ids.
func repoID(id int64) string {
	if id <= 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// pullRequest converts a node; Paths is left to changedFiles.
func (n *pullNode) pullRequest() gitprovider.PullRequest {
	pr := gitprovider.PullRequest{
		Number: n.Number, Title: n.Title, Body: n.Body, URL: n.URL, Branch: n.branch(), HeadCommit: n.head(),
		Base: n.BaseRefName, State: gitprovider.StateOpen, CreatedAt: n.CreatedAt.UTC(), Fork: n.IsCrossRepository,
		Labels: n.Labels.names(), RepoID: repoID(n.Repository.DatabaseID),
		Archived: n.Repository.IsArchived || n.Repository.IsLocked || n.Repository.IsDisabled,
	}
	if n.Author != nil { // else the account is gone
		pr.Author = n.Author.Login
	}
	switch n.State {
	case "MERGED":
		pr.State = gitprovider.StateMerged
	case "CLOSED":
		pr.State = gitprovider.StateClosed
	}
	switch {
	case pr.State == gitprovider.StateMerged && n.MergedAt != nil:
		pr.ClosedAt = n.MergedAt.UTC()
	case pr.State != gitprovider.StateOpen && n.ClosedAt != nil:
		pr.ClosedAt = n.ClosedAt.UTC()
	}
	return pr
}

// head returns the head's commit: while it is open, that of its branch. GitHub's field of the pull request itself has
// been seen to lag for hours.
func (n *pullNode) head() string {
	if tip := n.HeadRef.tip(); n.State == "OPEN" && !n.IsCrossRepository && tip != "" {
		return tip
	}
	return n.HeadRefOid
}

// branch returns the head branch. A fork's branch is prefixed with the fork's owner, as GitHub itself writes it, so
// that it is not mistaken for one of ours, whatever its name.
func (n *pullNode) branch() string {
	switch {
	case !n.IsCrossRepository:
		return n.HeadRefName
	case n.HeadRepository == nil: // the fork was deleted
		return "unknown:" + n.HeadRefName
	}
	return n.HeadRepository.Owner.Login + ":" + n.HeadRefName
}
