package gitprovider

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

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

// Defect is something at a repository that gets in the way of pull requests, or that does not do what people expect.
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
