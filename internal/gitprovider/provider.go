// Package gitprovider is the port to git hosting and the domain that every adapter shares: repositories, canonical
// paths, change sets that have passed tier and scope, branches, pull requests, the registry of providers.
//
// It knows no adapter and no use case. internal/proposals/prflow drives it; github/, gitea/ and local/ implement
// Provider.
package gitprovider

import (
	"cmp"
	"context"
	"slices"
	"strings"
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
// what its caller has just opened (Settler.Withdraw), and pull requests of ours on which nobody acts (Close).
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

	// Close closes an open pull request of ours and replaces its body in the same write, and returns the state that it
	// has then. One that has ended stays as it is; the body tells whether a Close ended it. conflict, and nothing is
	// changed, if its head is not the branch at c.Head; invalid_argument for a branch outside BranchPrefix; not_found if
	// the host has no such number. The call may be repeated. The error of a host that refuses, as for a pull request
	// that somebody merges at that moment, is the host's: Status shows the outcome.
	Close(ctx context.Context, repo RepoRef, c Closing) (State, error)

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

// Assigner is an optional ability of a Provider whose host knows reviewers and assignees.
type Assigner interface {
	// Assign asks for reviews by the people named (a name of the form owner/team is a team) and assigns the pull request.
	// It does not look what is there already: both may be repeated without harm. A name that the host does not take is
	// not_found and named in the message; the others may or may not have been set.
	Assign(ctx context.Context, repo RepoRef, number int, reviewers, assignees []string) error
}

// Editor is an optional ability of a Provider: it reads and corrects everything of a pull request except its commits.
// Every adapter here has it.
type Editor interface {
	// Details reads the present details of a pull request. not_found if there is no such number.
	Details(ctx context.Context, repo RepoRef, number int) (Details, error)
	// SetText replaces title and body of a pull request of ours, whatever its state; title "" leaves the title as it is.
	// It returns the state that the pull request has then. not_found if there is no such number.
	SetText(ctx context.Context, repo RepoRef, number int, title, body string) (State, error)
}

// Details holds everything of a pull request that is not in its commits. Names are as the host spells them; a team is
// owner/team, and lists are in no particular order.
type Details struct {
	Labels    []string
	Assignees []string
	Requested []string // whose review is asked for; some hosts go on naming who has given one
	Reviewed  []string // who has reviewed it
}

// Reviser is an optional ability of a Provider: it adds to an open pull request of ours. Every adapter here has it.
type Reviser interface {
	// Append adds one commit with all changes to the branch req.Branch, one of ours, whose Snapshot req.Snapshot is: its
	// base is the branch itself. It is atomic, and never a force-push. conflict if the branch is not at the snapshot's
	// commit any more, or if a file does not fit its action; not_found if the branch is gone; no_change and
	// invalid_argument as Commit has them.
	//
	// A host that can make the write depend on the files alone, and not on the branch, may put the commit onto one that
	// somebody has pushed a moment before: Parent of the answer tells.
	Append(ctx context.Context, req CommitRequest) (Commit, error)
	// Comment adds a comment to a pull request. It is not safe to repeat: after an ambiguous failure, RemarkReader
	// tells whether it is there. not_found if there is no such number.
	Comment(ctx context.Context, repo RepoRef, number int, text string) error
}

// RemarkReader is an optional ability of a Provider: it reads reviews and comments. Every adapter here has it.
type RemarkReader interface {
	// Remarks returns the submitted reviews, with or without text, the answers to their comments on lines, and the
	// comments of a pull request, oldest first; of a long discussion at least the newest 50 of each, and comments on lines
	// of the newest MaxCommentedReviews reviews that have any. not_found if there is no such number.
	Remarks(ctx context.Context, repo RepoRef, number int) ([]Remark, error)
}

// BlobReader is an optional ability of a Provider: it reads a present or former version of a file by its object id.
// Every adapter here has it.
type BlobReader interface {
	// ReadBlob returns the bytes of a blob. not_found if the repository has none of that id, or no more;
	// content_denied for
	// one of more than MaxContentRead bytes.
	ReadBlob(ctx context.Context, repo RepoRef, id string) ([]byte, error)
}

// FileLister is what a Provider can do besides: list the files of a folder and of all below it. Every adapter here can.
type FileLister interface {
	// ListFiles lists the plain files of a folder at the commit of a snapshot, sorted by path; folder is one at the root
	// that the snapshot's Tree has, or "" for all. complete is false if the host does not tell of all, or
	// if there are more
	// than MaxListedFiles.
	ListFiles(ctx context.Context, at *Snapshot, folder string) (files []ListedFile, complete bool, err error)
}

// MaxListedFiles bounds what ListFiles lists.
const MaxListedFiles = 20_000

// ListedFile is a plain file in a list.
type ListedFile struct {
	Path string
	ID   string // of its blob
	Size int64  // bytes
}

// SortListed sorts what a host told of a folder, and cuts it at MaxListedFiles.
func SortListed(files []ListedFile) (sorted []ListedFile, complete bool) {
	slices.SortFunc(files, func(a, b ListedFile) int { return strings.Compare(a.Path, b.Path) })
	return files[:min(len(files), MaxListedFiles)], len(files) <= MaxListedFiles
}

// BlobTooLarge is the refusal of ReadBlob to read more than MaxContentRead bytes.
func BlobTooLarge(id string) *fault.Error {
	return fault.New(fault.ContentDenied, "the blob %.12s has more than %d bytes and is not read", id, MaxContentRead)
}

// CheckReader is an optional ability of a Provider whose host runs checks.
type CheckReader interface {
	// Checks returns the outcome of CI on the commit head of a pull request. Where the pull request has another head by
	// now, and where the token may not see checks, none are reported.
	Checks(ctx context.Context, repo RepoRef, number int, head string) (Checks, error)
}

// LastRemark returns the newest of the remarks with words in it, by somebody who may write to the repository; nil if
// there is none. Our own answers are left out.
func LastRemark(remarks []Remark) *Remark {
	for _, r := range slices.Backward(remarks) {
		if r.MayWrite && r.hasWords() && !r.IsAnswer() {
			return &r
		}
	}
	return nil
}

// Remark is something that a person said about a pull request. Body is untrusted text.
type Remark struct {
	// ID tells the remark from every other one of the pull request, whenever it is read; "" if the host gives none.
	ID       string
	Author   string
	Program  bool // the author is one, as far as the host tells
	Body     string
	At       time.Time
	State    ReviewState // of a review; "" for a comment
	MayWrite bool        // whether the author may write to the repository, as far as the host tells
	// Lines are the comments on lines that came with a review, or the one that is an answer to such a comment.
	Lines []LineComment
}

// hasWords reports whether anything is said, in the body or on a line.
func (r Remark) hasWords() bool {
	return strings.TrimSpace(r.Body) != "" || slices.ContainsFunc(r.Lines,
		func(c LineComment) bool { return strings.TrimSpace(c.Body) != "" })
}

// ReviewRemarks returns a submitted review as a remark, and each later answer to one of its comments on lines as a
// remark of its own. id is the review's.
func ReviewRemarks(id string, r Review) []Remark {
	said := Remark{ID: id, Author: r.Author, Body: r.Body, At: r.SubmittedAt, State: r.State}
	var out []Remark
	for _, c := range r.Comments {
		if c.At.IsZero() && (c.Author == "" || c.Author == r.Author) {
			said.Lines = append(said.Lines, c)
			continue
		}
		out = append(out, Remark{ID: "line " + c.ID, Author: cmp.Or(c.Author, r.Author), Body: c.Body, At: c.At,
			Lines: []LineComment{c}})
	}
	return append([]Remark{said}, out...)
}

// Lister is an optional ability of a Provider that needs one request for each pull request to find out which files it
// changes.
type Lister interface {
	// ListKnown is ListOpen with the paths that are known without asking.
	ListKnown(ctx context.Context, repo RepoRef, label string) (KnownList, error)
}

// KnownList is a list of open pull requests. Those whose numbers are in Unread have no Paths yet.
type KnownList struct {
	PRs    []PullRequest
	Unread []int
	// ReadPaths reads the paths of pull requests of the list, by number. The result is valid until the next push.
	ReadPaths func(ctx context.Context, numbers []int) (map[int][]string, error)
	// EachReview says that ReviewStates costs a request for each number.
	EachReview bool
}

// Examiner is an optional ability of a Provider that uses a token: it finds out what the token may do.
type Examiner interface {
	// Examine asks the host about our access, in some calls that change nothing. base "" means the default branch. An
	// error means that the host could not be asked at all; what it would not tell stays nil in the Access.
	Examine(ctx context.Context, repo RepoRef, base string, labels []string) (Access, error)
}

// Pinger is an optional ability of a Provider that can tell cheaply whether its host serves us now. Every adapter here
// has it.
type Pinger interface {
	// Ping asks for something small that belongs to no repository, and changes nothing. nil: the host answers, and takes
	// our token if we have one.
	Ping(ctx context.Context) error
}

// Access says what our token may do in a repository, and how the repository is configured. A nil pointer means that the
// host did not say.
type Access struct {
	User   string   // the user that the host sees; "" when it did not say
	Scopes []string // of the token, as the host names them; nil when it did not say
	// Lacks are permissions of the token, as the host names them, without which no pull request can be opened, and
	// LacksForLabels those without which it gets no labels. They are the token's own, whatever its user may do; empty also
	// when the host did not say.
	Lacks, LacksForLabels []string
	Installation          *Installation // of an app that acts in place of a user; nil for a user's token

	Base          string // the branch that the answers are about
	CanPush       *bool  // may create branches, and so propose
	CanPushToBase *bool  // may write to the base branch without a pull request: it should not
	CanMerge      *bool  // may merge a pull request into the base branch: it should not
	BaseProtected *bool
	// Reviewed says that a pull request into the base branch needs somebody's approval before it is merged.
	Reviewed      bool
	MissingLabels []string // of those asked about
	ChecksRun     *bool    // whether CI is set up to run on our pull requests
	Archived      bool
	Fork          bool

	// BranchRules are what the host's rules restrict on branches of ours, in words. They are listed even if the token may
	// bypass them.
	BranchRules []string
	// Defects are what else people should know or mend there, each with what to do about it.
	Defects []Defect
	// Unsigned says what of a proposal the host would not sign, where commits must be signed; "" for nothing.
	Unsigned string
}

// Defect is something at a repository that hinders pull requests, or that does not do what people expect.
type Defect struct {
	What, Do string
	Stops    bool // no pull request can be opened, or none be merged
}

// Installation describes the access that an owner granted an app to their repositories.
type Installation struct {
	Permissions     []string // as the host names them, such as "contents: write"; sorted
	AllRepositories bool     // of the owner, not only chosen ones
	Settings        string   // address of the page where the owner changes it; "" when the host did not say
}

const (
	// AnswerOpening begins the comment by which we say that a review was answered by a commit.
	AnswerOpening = "Revised by Claude Ops in "
	// ReplyOpening begins what we post without a commit, and each reply to a comment on a line.
	ReplyOpening = "Answered by Claude Ops "
	// CloseOpening begins the comment by which we say that a pull request is closed because nobody has acted on it.
	CloseOpening = "Closed by Claude Ops: "
)

// Replier is an optional ability of a Provider: it answers comments on lines in their conversations. Every adapter here
// has it.
type Replier interface {
	// Reply posts the replies to comments on lines of a pull request. It may stop half-way, and is not safe to repeat:
	// after a failure RemarkReader tells which are there. not_found if there is no such number, or no such comment.
	Reply(ctx context.Context, repo RepoRef, number int, replies []LineReply) error
}

// LineReply answers one comment on a line.
type LineReply struct {
	To   LineComment
	Text string
	// Quoting is the text with the first words of the comment, for a host that puts it beside the comment and not below.
	Quoting string
}

// IsAnswer reports whether the remark has the form of our answers to reviews.
func (r Remark) IsAnswer() bool {
	if strings.TrimSpace(r.Body) != "" {
		return isAnswer(r.Body)
	}
	for _, c := range r.Lines {
		if !c.IsAnswer() {
			return false
		}
	}
	return len(r.Lines) > 0
}

// IsAnswer reports whether the comment has the form of our answers.
func (c LineComment) IsAnswer() bool { return isAnswer(c.Body) }

func isAnswer(text string) bool {
	return strings.HasPrefix(text, AnswerOpening) || strings.HasPrefix(text, ReplyOpening) ||
		strings.HasPrefix(text, CloseOpening)
}

// MaxReviewStates limits the pull requests of one call of ReviewStates.
const MaxReviewStates = 50

// ReviewLister is an optional ability of a Provider: it tells the state of the reviews of several pull requests. Every
// adapter here has it.
type ReviewLister interface {
	// ReviewStates returns, by number, changes_requested for a pull request whose changes somebody still asks for, and
	// approved for one that somebody approves otherwise. Only those count who may write to the repository. A pull request
	// with neither is left out, and so is a number that does not exist. At most MaxReviewStates numbers are asked about.
	ReviewStates(ctx context.Context, repo RepoRef, numbers []int) (map[int]ReviewState, error)
}

// StateOfReview returns the overall state of the reviews: changes_requested, approved or "". Only reviewers who may
// write count.
func StateOfReview(remarks []Remark) ReviewState {
	var reviews []Review
	for _, r := range remarks {
		if r.State != "" && r.MayWrite {
			reviews = append(reviews, Review{Author: r.Author, State: r.State, SubmittedAt: r.At})
		}
	}
	switch approvals, objections := Opinions(reviews); {
	case objections > 0:
		return ReviewChangesRequested
	case approvals > 0:
		return ReviewApproved
	}
	return ""
}

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

// Closing says which pull request is closed, and what its body says from then on.
type Closing struct {
	Number int
	Branch string // head branch, below BranchPrefix
	Head   string // head commit that was judged
	Body   string
}

// Check returns whether an open pull request is the one to close. ended is its state if it has ended: then nothing is
// to be done. The error has the codes that Provider.Close promises.
func (c Closing) Check(pr PullRequest) (ended State, err error) {
	if err := CheckOurs(c.Branch); err != nil {
		return "", err
	}
	switch {
	case pr.State != StateOpen:
		return pr.State, nil
	case c.Head == "" || pr.Branch != c.Branch || pr.HeadCommit != c.Head:
		return "", fault.New(fault.Conflict, "#%d is not closed: somebody has changed its branch since it was read", c.Number)
	}
	return "", nil
}

// NoBase is the error for a base branch that does not exist: not_found, with the branch to use instead. defaultBranch
// is the repository's, "" if that is not known.
func NoBase(repo RepoRef, branch, defaultBranch string) error {
	if defaultBranch == "" {
		return fault.New(fault.NotFound, "the repository %s has no branch %.200q; name an existing base branch", repo, branch)
	}
	return fault.New(fault.NotFound,
		"the repository %s has no branch %.200q; leave base_branch out for its default branch %.200q", repo, branch,
		defaultBranch)
}
