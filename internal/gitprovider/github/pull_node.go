package github

import (
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

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

// person is an account; nil if it is gone. Kind is "" where it was not asked for: User, Bot and others. A bot may have
// the name of a person.
type person struct {
	Login string
	Kind  string `json:"__typename"`
}

func (p person) isBot() bool { return p.Kind == "Bot" }

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
	Author            *person
	HeadRepository    *struct{ Owner person }
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
