package gitprovider

import (
	"slices"
	"strings"
	"time"
)

// LabelOurs marks the pull requests that Claude Ops opened; ListOpen is asked for it.
const LabelOurs = "claude-ops"

// State is the state of a pull request.
type State string

// The states of a pull request.
const (
	StateOpen   State = "open"
	StateClosed State = "closed" // closed without merging
	StateMerged State = "merged"
)

// PullRequest is a pull request as a provider reports it. Title and Body are untrusted text: other people may have
// changed them.
type PullRequest struct {
	Number     int
	Title      string
	Body       string
	URL        string
	Author     string // who opened it, as the host names them; "" where the host does not say
	Branch     string // head branch name; of a fork's branch, its owner and a colon come first
	Fork       bool   // the head is a branch of another repository, or of one that is gone: never one of ours
	HeadCommit string // "" when the host no longer knows
	Base       string
	// RepoID is the host's permanent id of the pull request's repository, whatever its name; "" where there is no such id.
	RepoID string
	// Archived says that the repository takes no changes.
	Archived  bool
	State     State
	Labels    []string
	CreatedAt time.Time
	ClosedAt  time.Time // zero while open; when merged, the time of the merge
	Paths     []string  // files that it changes now, old names of renames included, sorted
	// Unreviewed says that no review was submitted; false also where the host did not say.
	Unreviewed bool
}

// ReviewState is the verdict of a review.
type ReviewState string

// The states of a review.
const (
	ReviewApproved         ReviewState = "approved"
	ReviewChangesRequested ReviewState = "changes_requested"
	ReviewCommented        ReviewState = "commented"
	ReviewDismissed        ReviewState = "dismissed"
	ReviewPending          ReviewState = "pending"
)

// Account is the permanent id that an issuer of identities gave a person. The zero value belongs to no one.
type Account struct{ Issuer, Subject string }

// Review is one review of a pull request. Body is untrusted text.
type Review struct {
	Author      string
	Account     Account // of the author, where the record is ours: names are never compared there
	Program     bool    // the author is one, as far as the host tells
	State       ReviewState
	Body        string
	SubmittedAt time.Time // zero while pending
	// Comments are on lines of files, as far as the provider reads them.
	Comments []LineComment
	// UnreadComments counts those on lines that the provider did not read.
	UnreadComments int
}

// By tells the author from others: by the account or, at hosts that are not ours, by the name.
func (r Review) By() Account {
	if r.Account != (Account{}) {
		return r.Account
	}
	return Account{Subject: r.Author}
}

// LineComment is a review's comment on one line of a file, or an answer to one. Body is untrusted text.
type LineComment struct {
	ID string // as the host has it; "" where it has none
	// ID of the comment that this one answers, where the host keeps conversations; "" for the first of one
	Thread string
	Author string    // "" for the review's
	At     time.Time // of an answer to a comment; zero for what came with the review
	Path   string
	Line   int    // from 1; 0 for the file as a whole
	Before bool   // the line is one of the file as it was before the change, such as one that the change removes
	Commit string // the head that the line is counted in, or whose base it is counted in
	Body   string
	// Resolved says that somebody has marked the conversation as settled, as far as the host tells.
	Resolved bool
}

// MaxCommentedReviews limits the number of reviews, newest first, whose comments on lines a provider reads where each
// costs a request. It is far beyond what people write. A caller that reads more than fits into its answer says so.
const MaxCommentedReviews = 200

// ChecksState is the combined state of CI on the head commit.
type ChecksState string

// The combined states of CI.
const (
	ChecksNone    ChecksState = "none" // nothing reported
	ChecksPending ChecksState = "pending"
	ChecksSuccess ChecksState = "success"
	ChecksFailure ChecksState = "failure"
)

// Checks is the outcome of CI on a pull request's head commit.
type Checks struct {
	State   ChecksState
	Failing []string // names of the failing contexts, sorted
	// Details describe the failing contexts, as far as the host tells, in the order of their names.
	Details []FailedCheck
}

// FailedCheck is a failing context of CI. Its texts are untrusted.
type FailedCheck struct {
	Name    string
	Summary string // in a line or a few
	Log     string // the longer text that came with it; "" where the host has none
	URL     string // of a page about it
}

// Status is a pull request with everything that its author wants to know.
type Status struct {
	PullRequest
	Mergeable *bool // nil while the provider is still computing it, and for a pull request that is not open
	// Reviews are the reviews, and the comments of the conversation as ReviewCommented, without our own answers; by their
	// times, pending ones last. Of a long conversation they are at least the newest 50 comments.
	Reviews  []Review
	Checks   Checks
	MergedBy string // who merged it, as the host names them; "" if it is not merged, and where the host does not say
}

// AndConversation adds the comments of a conversation to reviews, as Status.Reviews has them.
func AndConversation(reviews []Review, comments []Remark) []Review {
	for _, c := range comments {
		if c.hasWords() && !c.IsAnswer() {
			reviews = append(reviews, Review{Author: c.Author, Program: c.Program, State: ReviewCommented, Body: c.Body,
				SubmittedAt: c.At})
		}
	}
	slices.SortStableFunc(reviews, func(a, b Review) int {
		switch {
		case a.SubmittedAt.IsZero() == b.SubmittedAt.IsZero():
			return a.SubmittedAt.Compare(b.SubmittedAt)
		case a.SubmittedAt.IsZero(): // pending
			return 1
		}
		return -1
	})
	return reviews
}

// MarkOpening begins the signed mark that Claude Ops puts into the bodies of its pull requests. Whether a mark is true
// only the holder of the key can tell; internal/proposals/prflow does.
const MarkOpening = "<!-- claude-ops:"

// MayBeOurs reports whether a pull request may be one of ours: by its label, by its branch, or by a mark, and never if
// its head is in a fork. It is the measure of Snapshot's Open and Closed; Body must be complete for it.
func MayBeOurs(pr PullRequest) bool {
	return ClearlyOurs(pr) || HasMark(pr)
}

// ClearlyOurs is MayBeOurs without the mark.
func ClearlyOurs(pr PullRequest) bool {
	return !pr.Fork && (slices.Contains(pr.Labels, LabelOurs) || strings.HasPrefix(pr.Branch, BranchPrefix))
}

// HasMark reports whether a pull request of the repository's own branches has a mark, true or not.
func HasMark(pr PullRequest) bool { return !pr.Fork && strings.Contains(pr.Body, MarkOpening) }

// Listed reports whether ListOpen lists a pull request: one of the repository's own branches with the label or with a
// mark.
func Listed(pr PullRequest, label string) bool {
	return !pr.Fork && (slices.Contains(pr.Labels, label) || HasMark(pr))
}

// Opinions counts the people whose last word is an approval or a request for changes, whatever the order of the
// reviews. A remark, or a review that is not submitted yet, takes nothing back; a dismissal does.
func Opinions(reviews []Review) (approvals, objections int) {
	reviews = slices.Clone(reviews)
	slices.SortStableFunc(reviews, func(a, b Review) int { return a.SubmittedAt.Compare(b.SubmittedAt) })
	last := map[Account]ReviewState{}
	for _, r := range reviews {
		switch r.State {
		case ReviewApproved, ReviewChangesRequested, ReviewDismissed:
			last[r.By()] = r.State
		}
	}
	for _, state := range last {
		switch state {
		case ReviewApproved:
			approvals++
		case ReviewChangesRequested:
			objections++
		}
	}
	return approvals, objections
}
