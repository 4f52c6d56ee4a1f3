package gitprovider

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Settler is the part of a Provider with which it is found out what an earlier proposal has left at the host, and with
// which a proposal that came second takes its own pull request back.
type Settler interface {
	// OurBranches returns the branches below BranchPrefix with their tips, all of them or an error.
	OurBranches(ctx context.Context, repo RepoRef) (map[string]string, error)

	// OpenOurs returns the open pull requests that may be ours and have a number below the given one, as a Snapshot has
	// them.
	OpenOurs(ctx context.Context, repo RepoRef, below int) ([]PullRequest, error)

	// ReadCommit returns one commit. not_found if the repository has no commit of that id.
	ReadCommit(ctx context.Context, repo RepoRef, id string) (CommitInfo, error)

	// Withdraw closes the pull request that its caller has just opened, and replaces its body. It is the only way of this
	// port to close something, and a narrow one: conflict, and nothing is changed, if the head is not a branch of ours any
	// more, or not at w.Head. If the pull request is closed, it replaces only the body. not_found if there is no such
	// number, conflict if it was merged.
	Withdraw(ctx context.Context, repo RepoRef, w Withdrawal) error

	// Lateness is how long after it was sent a write may still take effect although its caller has given up on it. It is 0
	// for a host that is not a server: its pull requests are in our own records, and a pending write can be waited for.
	Lateness() time.Duration
}

// ForgeLateness is the Lateness of a forge: longer than Gitea's longest limit for one git command (6 minutes by
// default), and than any gateway keeps a request.
const ForgeLateness = 10 * time.Minute

// CommitInfo is a commit as its repository has it.
type CommitInfo struct {
	ID      string // full object id
	Parents []string
	Message string    // untrusted text, as everybody may write one
	Author  string    // as the host names them, or as the commit does; untrusted text; "" if neither tells
	Time    time.Time // committer time
	// Paths are the files that it changes against its first parent, sorted, old names of renames included.
	Paths []string
}

// Withdrawal says which pull request is withdrawn, and what its body says from then on.
type Withdrawal struct {
	Number int
	Branch string // head branch, below BranchPrefix
	Head   string // head commit that the caller has made
	Body   string
}

// Check says why the pull request is not one that the withdrawal is about, with the codes that Settler.Withdraw
// promises, or nil.
func (w Withdrawal) Check(pr PullRequest) error {
	if err := CheckOurs(w.Branch); err != nil {
		return err
	}
	switch {
	case w.Head == "" || pr.Branch != w.Branch || pr.HeadCommit != w.Head:
		return fault.New(fault.Conflict, "#%d is not withdrawn: somebody has changed its branch since it was opened",
			w.Number)
	case pr.State == StateMerged:
		return fault.New(fault.Conflict, "#%d is not withdrawn: it was merged", w.Number)
	}
	return nil
}
