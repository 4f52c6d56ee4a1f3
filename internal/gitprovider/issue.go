package gitprovider

import (
	"context"
	"time"
)

// StartCommand begins a line of a comment that asks for a session of an agent.
const StartCommand = "/claude-ops"

// IssueReader is an optional ability of a Provider: it tells who asked for something at an issue, and what that account
// may do. The adapters of forges have it.
type IssueReader interface {
	// ReadIssue reads an issue or pull request with one act on it. Nothing is cached. The Act is zero if there is none.
	// misconfigured if the host does not tell our token who we are, or who may write; not_found if the host has no such
	// number or comment.
	ReadIssue(ctx context.Context, repo RepoRef, q IssueQuery) (Issue, error)
}

// IssueQuery names an issue and the act on it: a comment by its id or, if that is 0, the last time that somebody put
// the label on it, of those since the time.
type IssueQuery struct {
	Number  int
	Comment int64
	Label   string
	Since   time.Time
}

// Issue is an issue or a pull request. Its texts are untrusted.
type Issue struct {
	Title, Body string
	Pull        bool
	Labels      []string
	Act         IssueAct
}

// IssueAct is a comment on an issue, or that it got a label.
type IssueAct struct {
	ID     int64 // unique at the host among acts of its kind; 0 if there is none
	By     IssueAccount
	Text   string // of a comment; untrusted
	At     time.Time
	Edited bool // the comment is not as it was made
}

// IssueAccount is who acted.
type IssueAccount struct {
	ID       int64
	Login    string
	Program  bool // a bot, as far as the host tells
	Ours     bool // the account of our own token
	MayWrite bool // to the code of the repository
}
