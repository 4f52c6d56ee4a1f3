package github

import (
	"context"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// pullFragment is what is read of a pull request.
const pullFragment = `
fragment pull on PullRequest {
  id number title body url state isCrossRepository headRefName headRefOid baseRefName createdAt updatedAt closedAt mergedAt
  author { login } headRepository { owner { login } }
  labels(first: 100) { nodes { name } }
}
`

// changedFragment is read only where it is needed: GitHub has to compare commits for it.
const changedFragment = `
fragment changed on PullRequest { files(first: 100) { pageInfo { hasNextPage } nodes { path changeType } } }
`

// pullNode is a pull request as GraphQL answers it.
type pullNode struct {
	ID                string
	Number            int
	Title, Body, URL  string
	State             string
	IsCrossRepository bool
	HeadRefName       string
	HeadRefOid        string
	BaseRefName       string
	CreatedAt         time.Time
	UpdatedAt         time.Time
	ClosedAt          *time.Time
	MergedAt          *time.Time
	Author            *struct{ Login string }
	HeadRepository    *struct{ Owner struct{ Login string } }
	Labels            *struct{ Nodes []struct{ Name string } }
	Files             *struct {
		PageInfo pageInfo
		Nodes    []struct{ Path, ChangeType string }
	}
}

type pageInfo struct {
	HasNextPage bool
	EndCursor   string
}

type pullConnection struct {
	PageInfo pageInfo
	Nodes    []*pullNode
}

// pullRequest converts a node; Paths is left to Provider.pathsOf.
func (n *pullNode) pullRequest() gitprovider.PullRequest {
	pr := gitprovider.PullRequest{
		Number: n.Number, Title: n.Title, Body: n.Body, URL: n.URL, Branch: n.branch(), HeadCommit: n.HeadRefOid,
		Base: n.BaseRefName, State: gitprovider.StateOpen, CreatedAt: n.CreatedAt.UTC(), Fork: n.IsCrossRepository,
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
	if n.Labels != nil {
		for _, label := range n.Labels.Nodes {
			pr.Labels = append(pr.Labels, label.Name)
		}
	}
	return pr
}

// branch is the head branch. One of a fork is none of the repository's, whatever its name: the fork's owner is put before
// it, as GitHub itself writes it, so that nobody takes it for one of ours.
func (n *pullNode) branch() string {
	switch {
	case !n.IsCrossRepository:
		return n.HeadRefName
	case n.HeadRepository == nil: // the fork was deleted
		return "unknown:" + n.HeadRefName
	}
	return n.HeadRepository.Owner.Login + ":" + n.HeadRefName
}

// pullList says which pull requests of a repository are wanted.
type pullList struct {
	arguments string            // of pullRequests: filter and order
	strings   map[string]string // the string variables in arguments
	size      int               // of a page
	files     bool              // whether the changed files come along
	end       time.Time         // the list, newest update first, ends before this time; zero: it is read to its end
}

func openPulls() pullList {
	return pullList{arguments: "states: [OPEN], orderBy: {field: CREATED_AT, direction: ASC}", size: pageSize}
}

func labelledPulls(label string) pullList {
	list := openPulls()
	list.arguments += ", labels: [$label]"
	list.strings = map[string]string{"label": label}
	return list
}

// field is the selection of one page. after names a variable; "" asks for the first page.
func (l pullList) field(alias string, size int, after string) string {
	var b strings.Builder
	b.WriteString(alias + ": pullRequests(" + l.arguments + ", first: " + decimal(size))
	if after != "" {
		b.WriteString(", after: $" + after)
	}
	b.WriteString(") { pageInfo { hasNextPage endCursor } nodes { ...pull")
	if l.files {
		b.WriteString(" ...changed")
	}
	b.WriteString(" } }")
	return b.String()
}

// pageQuery asks for one page of the list; cursor "" for the first.
func (p *Provider) pageQuery(repo gitprovider.RepoRef, list pullList, cursor string) *query {
	q := newQuery(repo)
	for name, value := range list.strings {
		q.variable(name, "String!", value)
	}
	after := ""
	if cursor != "" {
		after = "after"
		q.variable(after, "String!", cursor)
	}
	q.add(list.field("pulls", list.size, after))
	q.fragment(pullFragment)
	if list.files {
		q.fragment(changedFragment)
	}
	return q
}

// pageAfter reads one page of the list.
func (p *Provider) pageAfter(ctx context.Context, repo gitprovider.RepoRef, list pullList, cursor string) (
	*pullConnection, error) {
	var data struct {
		Repository *struct{ Pulls *pullConnection }
	}
	if err := p.graphql(ctx, p.pageQuery(repo, list, cursor).operation(needPullsRead), &data); err != nil {
		return nil, err
	}
	if data.Repository == nil || data.Repository.Pulls == nil {
		return nil, p.notFound()
	}
	return data.Repository.Pulls, nil
}

// readOn reads the pages after the first one, and returns the nodes of all.
func (p *Provider) readOn(ctx context.Context, repo gitprovider.RepoRef, list pullList, first *pullConnection) (
	[]*pullNode, error) {
	var all []*pullNode
	seen := map[int]bool{}
	for at := first; ; {
		for _, n := range at.Nodes {
			if n != nil && !seen[n.Number] { // what moves within the order while it is read may appear twice
				seen[n.Number] = true
				all = append(all, n)
			}
		}
		if !at.PageInfo.HasNextPage || list.ended(at) {
			return all, nil
		}
		if at.PageInfo.EndCursor == "" {
			return nil, fault.New(fault.UpstreamError, "GitHub promised more pull requests than it showed; try again later")
		}
		next, err := p.pageAfter(ctx, repo, list, at.PageInfo.EndCursor)
		if err != nil {
			return nil, err
		}
		at = next
	}
}

// ended reports whether a page reaches behind the list's end.
func (l pullList) ended(at *pullConnection) bool {
	last := len(at.Nodes) - 1
	return !l.end.IsZero() && last >= 0 && at.Nodes[last] != nil && at.Nodes[last].UpdatedAt.Before(l.end)
}
