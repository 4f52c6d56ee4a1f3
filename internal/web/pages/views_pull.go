package pages

// Pulls are open pull requests across repositories.
type Pulls struct {
	Page
	Repos []RepoPulls
	More  int // repositories left out
	At    When
}

// RepoPulls are those of one repository, or why they cannot be read.
type RepoPulls struct {
	Name   string
	Failed string
	Code   string
	Pulls  []*PullRow
	More   int // left out
}

// PullRow is one open pull request.
type PullRow struct {
	Pull
	Title, Branch string
	At            When
	Files         List

	Asked      bool   // what follows was asked for, and answered
	Failed     string // code of why it was not answered
	Checks     string
	Approvals  int // reviewers who approve
	Objections int // reviewers who ask for changes
}

// PullPage is one pull request.
type PullPage struct {
	Page
	Pull
	Repo, Name  string
	Path        string // of this page, without the base
	State       string
	Mergeable   string
	Branch      string
	BaseBranch  string
	Head        string
	At, Closed  When
	Body        Prose
	Mind        []string // what a person should know before merging
	Checks      string
	Failing     List
	Reviews     []Review
	MoreReviews int
	Diff        *Diff // nil where the provider shows it
	DiffNote    string
	Unified     string
	SideBySide  string
	Actions     []Option // reviews that this person may give; none elsewhere
	Why         string   // why there are none
	Done        string   // what was just done
	Warnings    []string
}

// Review is one review.
type Review struct {
	Author, State, Body string
	At                  When
}

// PullSeen is what was last seen of a pull request.
type PullSeen struct {
	State                 string
	Ended                 When   // the zero When while it is open
	EndedBy               string // "" if nobody said
	AsOf                  When   // the zero When if the provider was not asked yet
	SeenBy                string
	Approvals, Objections int
	Checks                string // "" if not known
}
