// Package gitprovider is the port to git hosting and the domain that every adapter shares: repositories, canonical
// paths, change sets that have passed tier and scope, branches, pull requests, the registry of providers.
//
// It knows no adapter and no use case. internal/proposals/prflow drives it; github/, gitea/ and local/ implement
// Provider.
package gitprovider

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Provider is one git host. Implementations are safe for concurrent use, make no call before a method is called, honour
// ctx in every call, and return only *fault.Error (context errors included, as fault.Timeout).
//
// Codes that every method may return: not_found (repository), upstream_error, timeout, rate_limited,
// provider_disabled. Further codes are named at the method.
//
// The port has no merge, no approval and no force-push on purpose: what is not here, no caller can reach. It closes
// nothing but what its caller has just opened; see Settler.Withdraw.
type Provider interface {
	Settler

	// Name is the provider's name in configuration and records: "github", "gitea" or "local".
	Name() string

	// Snapshot reads in as few calls as the host allows all that the gates need to know, at one commit of the base
	// branch. It changes nothing in the repository. A missing base branch and an empty repository are not_found.
	Snapshot(ctx context.Context, q SnapshotQuery) (*Snapshot, error)

	// Commit creates the branch req.Branch at req.Snapshot's base commit with one commit that holds all changes.
	// It is atomic: branch and commit, or nothing. It never updates a branch that exists. conflict if the base branch has
	// moved away from the snapshot, if the branch exists or one above or below it, or if a file does not fit its action;
	// no_change if a file would stay as it is; invalid_argument for the zero ChangeSet and for a branch outside
	// BranchPrefix.
	Commit(ctx context.Context, req CommitRequest) (Commit, error)

	// OpenPullRequest opens a pull request for a branch that Commit made. When an open one for the same head and base
	// exists, that one is returned: the call is safe to repeat after an ambiguous failure. Labels that the host lets a
	// creation carry are set here; see Label. not_found for a missing head or base, no_change if the base contains the
	// head already.
	OpenPullRequest(ctx context.Context, spec PullRequestSpec) (PullRequest, error)

	// Label makes sure that the pull request carries the labels, and does nothing if it already does. not_found if there
	// is no such number.
	Label(ctx context.Context, repo RepoRef, number int, labels []string) error

	// FindByHead returns the newest pull request, in whatever state, whose head is the branch, or nil if there is none. It
	// resolves an ambiguous OpenPullRequest.
	FindByHead(ctx context.Context, repo RepoRef, branch string) (*PullRequest, error)

	// BranchTip returns the commit that the branch points to, or "" if there is no such branch.
	BranchTip(ctx context.Context, repo RepoRef, branch string) (string, error)

	// DeleteBranch removes one of our branches if its tip is still the given commit; conflict if it is not. A branch that
	// is already gone is not an error. invalid_argument for every branch outside BranchPrefix.
	DeleteBranch(ctx context.Context, repo RepoRef, branch, tip string) error

	// ListOpen returns every open pull request that carries the label, oldest first, with its paths, and those that lack
	// it and have a mark: whether that is true only internal/proposals/prflow can tell. One whose head is in a fork is
	// never among them; see Listed. Pagination is followed to the end: the list is complete or the call fails.
	ListOpen(ctx context.Context, repo RepoRef, label string) ([]PullRequest, error)

	// Status returns one pull request with its reviews and checks. not_found if there is no such number. An open one
	// whose head branch is gone is closed.
	Status(ctx context.Context, repo RepoRef, number int) (Status, error)
}

// SnapshotQuery says what a Snapshot is about.
type SnapshotQuery struct {
	Repo        RepoRef
	Base        string    // base branch; "" means the repository's default branch
	Paths       []Path    // target files of the change
	Branches    []string  // head branch names that the change might take, to see which are free
	ClosedSince time.Time // how far back Closed reaches; zero: Closed stays empty
	Contents    bool      // whether Contents is wanted, which costs some hosts further calls; the Tree has the object ids
	// whether Base, BaseCommit, Tree and Contents are all that is wanted; some hosts do not name a default branch then
	FilesOnly bool
	Foreign   bool // whether Foreign is wanted, which costs some hosts up to MaxForeign further calls
}

// MaxForeign limits the pull requests of others whose changed files a Snapshot reads: the newest of those whose files
// were not read before at their present commit.
const MaxForeign = 20

// Snapshot is the state of a repository at one commit of its base branch.
type Snapshot struct {
	Repo          RepoRef // as the host spells it now (after renames)
	RepoID        string  // see PullRequest.RepoID; "" also if FilesOnly
	URL           string  // web address of the repository; a file:// URL for the local provider
	DefaultBranch string
	Base          string // the base branch that was asked for, or the default branch
	BaseCommit    string // full object id
	Archived      bool   // archived or otherwise read-only for everybody
	Fork          bool   // a fork of another repository

	// Tree lists each existing ancestor folder of the queried paths, the root included: every entry of those folders
	// by its full path. An entry that is absent here does not exist in the base commit.
	Tree Tree
	// Contents holds the bytes of the queried paths that exist as regular files of at most MaxContentRead bytes; empty
	// unless the query asks for it.
	Contents map[Path][]byte
	// Tips maps the queried branch names that exist to their commits.
	Tips map[string]string
	// Open holds the open pull requests that may be ours; see MayBeOurs.
	Open []PullRequest
	// Closed holds those closed without merging since ClosedSince, by the same measure.
	Closed []PullRequest
	// Foreign holds the other open pull requests into the base branch, of people and from forks, as far as their files are
	// known; empty unless the query asks for it. ForeignUnread counts those whose files are not known, or not all of them.
	Foreign       []PullRequest
	ForeignUnread int
	// LastNumber is a number up to which every pull request that is open is among those that were read, ours or not; the
	// highest that is known. Hosts count upwards, so that a pull request with the next number was the next one. 0 from a
	// host whose Lateness is 0.
	LastNumber int
}

// MaxContentRead bounds, in bytes, the base file contents that a Snapshot carries.
const MaxContentRead = 1 << 20

// CommitRequest asks for one commit on a new branch.
type CommitRequest struct {
	Snapshot *Snapshot // the state that the gates approved; the write is guarded by it
	Branch   string
	Changes  ChangeSet
	Message  string    // subject, blank line, body
	Time     time.Time // author and committer time where the host lets us set it
}

// Check holds a request against its own snapshot before anything is written, with the codes that Provider.Commit
// promises. Hosts do not: they overwrite files that exist, follow no rule about links, and make commits that change
// nothing.
func (r CommitRequest) Check() error {
	switch {
	case r.Snapshot == nil || r.Snapshot.BaseCommit == "" || r.Snapshot.Base == "":
		return fault.New(fault.InvalidArgument, "a commit needs the snapshot that the gates approved")
	case r.Changes.Len() == 0:
		return fault.New(fault.InvalidArgument, "the change set is empty; a commit needs at least one approved file")
	}
	if err := CheckOurs(r.Branch); err != nil {
		return err
	}
	for _, c := range r.Changes.changes {
		v := r.Snapshot.Tree.Mismatch(c)
		switch {
		case v == nil:
		case v.Code == fault.NoChange && c.Action == ActionUpdate:
			return fault.New(fault.NoChange, "%s; %s", v.Message, v.Suggestion)
		default: // the gates have approved this path, so it is the base that does not fit
			return fault.New(fault.Conflict, "%s; %s", v.Message, v.Suggestion)
		}
	}
	return nil
}

// CheckAppend is Check for Reviser.Append: the snapshot must be that of the branch itself.
func (r CommitRequest) CheckAppend() error {
	if r.Snapshot != nil && r.Snapshot.Base != r.Branch {
		return fault.New(fault.InvalidArgument, "a commit is added to the branch that was read, and that is not %.200q",
			r.Branch)
	}
	return r.Check()
}

// Commit is a commit that a provider made.
type Commit struct {
	ID     string // full object id
	Branch string
	Parent string // the commit that Reviser.Append has put it onto; "" otherwise
}

// PullRequestSpec describes the pull request to open.
type PullRequestSpec struct {
	Repo   RepoRef
	Base   string
	Head   string // branch name
	Title  string
	Body   string
	Labels []string
	Draft  bool // where the host has drafts; the local provider has none and ignores it
}
