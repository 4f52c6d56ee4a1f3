package gitprovider

import (
	"context"
	"time"
)

// Assigner is what a Provider can do besides, if its host knows reviewers and assignees.
type Assigner interface {
	// Assign asks for reviews by the people named (a name of the form owner/team is a team) and assigns the pull request.
	// It does not look what is there already: both may be repeated without harm. A name that the host does not take is
	// not_found and named in the message; the others may or may not have been set.
	Assign(ctx context.Context, repo RepoRef, number int, reviewers, assignees []string) error
}

// Editor is what a Provider can do besides: see and mend what a pull request has beside its commits. Every adapter here can.
type Editor interface {
	// Details reads what a pull request has now. not_found if there is no such number.
	Details(ctx context.Context, repo RepoRef, number int) (Details, error)
	// SetBody replaces the body of a pull request of ours. not_found if there is no such number.
	SetBody(ctx context.Context, repo RepoRef, number int, body string) error
}

// Details is what a pull request has beside its commits. Names are as the host spells them; a team is owner/team, and
// lists are in no order.
type Details struct {
	Labels    []string
	Assignees []string
	Requested []string // whose review is asked for; some hosts go on naming who has given one
	Reviewed  []string // who has reviewed it
}

// RemarkReader is what a Provider can do besides: tell what people who may decide said last. Every adapter here can.
type RemarkReader interface {
	// LastRemark is the newest comment or submitted review with words in it by somebody who may write to the repository; nil
	// if there is none, or if the host does not tell who may write. not_found if there is no such number.
	LastRemark(ctx context.Context, repo RepoRef, number int) (*Remark, error)
}

// Remark is something that a person said about a pull request. Body is untrusted text.
type Remark struct {
	Author string
	Body   string
	At     time.Time
}

// Newer returns the remark that was made later; of two at the same time, other. nil counts as none.
func (r *Remark) Newer(other *Remark) *Remark {
	if other == nil || r != nil && r.At.After(other.At) {
		return r
	}
	return other
}

// Examiner is what a Provider can do besides, if a token stands between us and the host: tell what it may do.
type Examiner interface {
	// Examine asks the host about our access, in some calls that change nothing. base "" means the default branch. An
	// error means that the host could not be asked at all; what it would not tell stays nil in the Access.
	Examine(ctx context.Context, repo RepoRef, base string, labels []string) (Access, error)
}

// Pinger is what a Provider can do besides, if it can tell cheaply whether it serves us now. Every adapter here can.
type Pinger interface {
	// Ping asks for something small that belongs to no repository, and changes nothing. nil: the host answers, and takes our
	// token if we have one.
	Ping(ctx context.Context) error
}

// Access is what our token may do in a repository, and what the repository is prepared for. A nil pointer means that the
// host did not say.
type Access struct {
	User   string   // whom the host takes us for; "" when it did not say
	Scopes []string // of the token, as the host names them; nil when it did not say
	// Lacks are permissions of the token, as the host names them, without which no pull request can be opened, and LacksForLabels
	// those without which it gets no labels. They are the token's own, whatever its user may do; empty also when the host did not
	// say.
	Lacks, LacksForLabels []string
	Installation          *Installation // of an app that acts in place of a user; nil for a user's token

	Base          string // the branch that the answers are about
	CanPush       *bool  // may create branches, and so propose
	CanPushToBase *bool  // may write to the base branch without a pull request: it should not
	CanMerge      *bool  // may merge a pull request into the base branch: it should not
	BaseProtected *bool
	MissingLabels []string // of those asked about
	ChecksRun     *bool    // whether CI is set up to run on our pull requests
	Archived      bool
	Fork          bool
}

// Installation is what an owner granted an app for their repositories.
type Installation struct {
	Permissions     []string // as the host names them, such as "contents: write"; sorted
	AllRepositories bool     // of the owner, not only chosen ones
	Settings        string   // address of the page where the owner changes it; "" when the host did not say
}
