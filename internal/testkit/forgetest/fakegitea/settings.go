package fakegitea

import (
	"slices"
	"time"
)

// Label is a label that a repository defines. Names need not be unique, as on the real server.
type Label struct {
	ID          int64 // 0 when added by Configure: the server gives it one
	Name        string
	Color       string // six hex digits; "" stands for ededed
	Description string
}

// Status is CI's result for a commit. Any state is accepted, as on the real server.
type Status struct {
	State       string // success, pending, failure, error, warning
	Context     string
	Description string
	Target      string // address of the details
}

// MergeableReads says what `mergeable` shows after the base branch of an open pull request moved: for the next Stale
// reads what it showed before, for the Checking reads after these false, then the truth. Only GET of that one pull
// request is a read; lists show the same without counting.
type MergeableReads struct{ Stale, Checking int }

// Settings holds the properties of a repository that Configure can change. The zero value is a public, writable
// repository of a current server.
type Settings struct {
	Labels     []Label
	Protection Protection
	Features   Features
	Archived   bool
	Fork       bool
	Private    bool
	// ReadOnly means that the server's Token may read the repository and nothing else.
	ReadOnly bool
	// RenamedFrom is an earlier name, with the same owner or as owner/name: every request for it is redirected.
	RenamedFrom string
	// Collaborators maps users to "read" or "write". The owner needs no entry.
	Collaborators map[string]string
	// Tags maps tag names to commits. A tag wins over a branch of the same name in git/trees, and nowhere else.
	Tags map[string]string
	// Statuses holds what CI said, by commit, oldest first.
	Statuses map[string][]Status
	Delays   Delays
}

// Protection lists what no one may change, not even the owner.
type Protection struct {
	// ProtectedPatterns are branch names or patterns (`*` stays within a segment, `**` does not) to which pushes are
	// refused.
	ProtectedPatterns []string
	// RequiredApprovals is, by pattern, how many approvals a protected branch demands.
	RequiredApprovals map[string]int
	// ProtectedFiles are patterns of files that must not be changed on a new branch below claude-ops/.
	ProtectedFiles []string
}

// Features lists what a repository or its server has or lacks.
type Features struct {
	NoPulls        bool // pull requests are switched off
	NoFileContents bool // the server does not know file-contents yet
	NoLFS          bool // LFS_START_SERVER is off
	// Actions turns CI by the server itself on: the repository has_actions, and workflow files are listed.
	Actions bool
	// ReviewNumber says when pull requests have their number of reviews.
	ReviewNumber Number
}

// Number says when a server tells a number.
type Number int

// Builds of one version differ between the first two; older servers do not know the number.
const (
	NumberAlways Number = iota
	NumberUnlessZero
	NumberNever
)

// Delays are how long the server shows what is not true any more, and what happens at the same time as a request.
type Delays struct {
	MergeableReads MergeableReads
	// LateClose is the number of reads for which a pull request still shows as open after its head branch was deleted
	// through the API. Only GET of that one pull request is a read.
	LateClose int
	// LateStale is the number of reads of its reviews for which a pull request shows, after a push, reviews of the former
	// head as not stale yet.
	LateStale int
	// LateHead is the number of reads of lists for which a pull request shows its former head after a push. A single one,
	// git's references and the answer to a change show the branch's own.
	LateHead int
	// LaxParallel is the number of next creations of a pull request that overlook an open one with the same head and base,
	// like creations that are in flight together.
	LaxParallel int
	// BeforeRefUpdate runs once, in the next POST contents, after its checks and before it moves a branch; the host is not
	// locked. With it a test lets another sender be faster.
	BeforeRefUpdate func()
}

// repoState is the server's state of a repository beyond the host's.
type repoState struct {
	Settings
	id      int64
	created time.Time
	prs     map[int]*prState
	objects objects
}

// prState is the server's state of a pull request beyond the host's.
type prState struct {
	id        int64
	poster    string
	updated   time.Time
	labels    []int64 // ids, ascending; see repoState.labelsOf
	assignees []string
	requested []review // review requests that were not answered yet
	reviews   []review // beside the host's reviews, by index

	inLists   formerHead // what lists of pull requests go on showing
	inReviews formerHead // what decides whether a review is stale
	late      int        // reads before a deleted head branch is noticed
	base      string     // tip of the base branch that merge is about
	merge     mergeState
}

// formerHead is the head from before a push, which is shown for a number of reads more.
type formerHead struct {
	reads int
	head  string
}

// show returns the head that is shown, and counts as a read.
func (f *formerHead) show(now string) string {
	if f.reads == 0 {
		return now
	}
	f.reads--
	return f.head
}

// mergeState is the server's progress in computing `mergeable`.
type mergeState struct {
	shown           bool // what it was before the base moved
	stale, checking int  // reads left
}

// review is the server's state of a review, or of a request for one, beyond the host's.
type review struct {
	id        int64
	login     string
	commit    string // head at the time; of a request: ""
	submitted time.Time
	dismissed bool // by a person, not by a newer verdict
	after     int  // of a request: how many reviews there were
}

// signature says who acted on a commit and when.
type signature struct {
	who  personJSON
	when time.Time
}

// stamp is the server's state of a commit beyond the host's.
type stamp struct{ author, committer signature }

func (st *repoState) labelNamed(name string) (Label, bool) {
	i := slices.IndexFunc(st.Labels, func(l Label) bool { return l.Name == name })
	if i < 0 {
		return Label{}, false
	}
	return st.Labels[i], true
}

func (st *repoState) labelByID(id int64) (Label, bool) {
	i := slices.IndexFunc(st.Labels, func(l Label) bool { return l.ID == id })
	if i < 0 {
		return Label{}, false
	}
	return st.Labels[i], true
}
