package pages

// Page is what the layout shows around every page. Every view embeds one.
type Page struct {
	Base       string // path below which the server is, "" or "/ops"
	Title      string
	Current    string // path of the entry of the navigation that the page belongs to
	Who        string // "" when nobody is signed in
	CanSignOut bool
	CanSignIn  bool   // nobody knows who it is
	Style      string // names of assets
	Icon       string
	Version    string
	Scripts    []string // names of assets, for pages that follow what happens
	Position   string   // what the page knows of what has happened; "" for a page that stays as it is
}

// Nav is the navigation.
func (Page) Nav() []NavItem {
	return []NavItem{
		{"/", "Overview"}, {"/proposals", "Proposals"}, {"/pulls", "Pull requests"}, {"/sessions", "Sessions"}, {"/policy", "Policy"}, {"/audit", "Audit"},
		{"/doctor", "Doctor"},
	}
}

// NavItem is an entry of the navigation.
type NavItem struct{ Path, Text string }

// Pull points to a pull request.
type Pull struct {
	Number int
	Page   string // address of our page, without the base; "" if there is none
	URL    string // http(s) address at the provider, or ""
	State  string // as last seen; "" if not known, or not shown here
}

// Attempt is a row of a listing of attempts.
type Attempt struct {
	Link    string // of the proposal, without the base
	ID      string
	Title   string
	Repo    string
	Outcome string
	Code    string
	Gates   []string
	Caller  string
	Door    string
	At      When
	Paths   List
	Pull    *Pull
	// Warnings are what the gates let pass and a person should know before merging.
	Warnings []string
}

// Overview is the first page.
type Overview struct {
	Page
	Tier      string
	TierMeans string
	DryRun    bool
	ReadOnly  string
	Providers []Provider
	Attempts  []Attempt
	Counts    []Count
	Open      *Open // nil as long as nobody has looked at the providers
	Refusals  []Bar
	Days      int
	Needs     []Need
	Running   []SessionRow // sessions
}

// Open is how many pull requests are open, as /pulls has found them last.
type Open struct {
	Count, Failed int // pull requests; repositories that could not be read
	At            When
}

// Provider is a provider as configuration made it.
type Provider struct {
	Name     string
	Enabled  bool
	Hosts    string
	Disabled string
}

// Count is a number with a link to what was counted.
type Count struct {
	Text  string
	Count int
	Means string
}

// Bar is one bar of the chart of refusals.
type Bar struct {
	Gate       string
	Count, Max int
	Link       string
}

// Need is something that needs a person.
type Need struct {
	What string
	Why  string
	Link string // without the base
	At   When
}

// Proposals is the listing of attempts.
type Proposals struct {
	Page
	Filter   Filter
	Attempts []Attempt
	Newer    string // queries of the neighbouring pages; "" for none
	Older    string
	First    string // query of the newest page; "" if this is it
}

// Filter is what a listing was narrowed by.
type Filter struct {
	Repo, Caller, Search, Since, Until string
	Outcome, Gate, Pull                []Option
	Any                                bool
}

// Option is an option of a choice.
type Option struct {
	Value, Text string
	Chosen      bool
}

// Proposal is all that is known of one proposal.
type Proposal struct {
	Page
	ID         string
	Attempts   []AttemptDetail
	Change     *Change
	CanPromote bool
	WhyNot     string // why a dry run cannot be opened by this person here; "" if it can, or is none
}

// AttemptDetail is an attempt, gate by gate.
type AttemptDetail struct {
	Attempt
	Action   string
	Session  string // address of the agent's session that made it, without the base; "" for none
	Message  string
	Tier     string
	Base     string
	Branch   string
	Took     string
	Seq      int64
	Verdicts []Verdict
}

// Verdict is what a gate said.
type Verdict struct {
	Gate       string
	Ruling     string
	Detail     string
	Warnings   []string
	Violations []Violation
	More       int // violations left out
}

// Violation is one broken rule.
type Violation struct{ Code, Path, Rule, Message, Suggestion string }

// Change is what a proposal changes.
type Change struct {
	State      string
	Abandoned  bool
	Type       string
	Title      string
	Body       Prose
	Branch     string
	Base       string
	BaseCommit string
	Commit     string
	Digest     string
	At         When
	Pull       *Pull
	Seen       *PullSeen // what was last seen of the pull request; nil if there is none
	Diff       Diff
	DiffNote   string // what the diff compares, or why there is none
	Unified    string // links to the two forms
	SideBySide string
	Files      []File
	MoreFiles  int
}

// File is the whole new content of a file.
type File struct {
	Path, Action, Content string
	Cut                   int // bytes left out
}

// Policy is the effective rules.
type Policy struct {
	Page
	Problem  string // why there is none
	Source   string
	Hash     string
	Sections []Section
	Path     string
	Tiers    []Option
	Answer   *PolicyAnswer
}

// Section is some rules under a heading.
type Section struct {
	Title string
	Rules []string
	Code  bool // the rules are patterns
}

// PolicyAnswer is the answer to "may this tier change this path?".
type PolicyAnswer struct {
	Allowed    bool
	Tier       string
	Path       string
	Rule       string
	Code       string
	Message    string
	Suggestion string
}

// Audit is a page of the audit.
type Audit struct {
	Page
	Rows                []AuditRow
	Newer, Older, First string
	Verified            Verification
}

// AuditRow is one row.
type AuditRow struct {
	Seq     int64
	At      When
	Action  string
	Link    string // of the proposal; "" for none
	Repo    string
	Outcome string
	Code    string
	Caller  string
	Door    string
	Message string
	Hash    string
	Pull    *Pull
}

// Verification is what recomputing the chain has found.
type Verification struct {
	State   string // "whole", "broken", "running" or "failed"
	Rows    int64
	Head    string
	Problem string
	At      When
}

// Doctor is what `claudeops doctor` says.
type Doctor struct {
	Page
	CanOpen  bool
	Findings []Finding
	At       When
}

// Finding is one line of it.
type Finding struct {
	Name, Status, Detail string
	Blocks               bool
}

// Problem is an error.
type Problem struct {
	Page
	Status     int
	Text       string
	Code       string
	Detail     string
	Violations []Violation
	More       int // violations left out
	Existing   string
	ExistingAt string
	RequestID  string
	Attempt    string // address of the recorded attempt, without the base
	RetryAfter int
	SignIn     *SignInForm // offered where signing in may help
}

// SignIn is the page for signing in.
type SignIn struct {
	Page
	SignInForm
	Note     string // why it is asked for again
	SignedIn string // who is signed in already
}

// Once is the page of a one-time address.
type Once struct {
	Page
	Code   string
	Next   string // where to go then, below the base
	Script string // name of the asset that presses the button
}

// SignInForm is the form.
type SignInForm struct {
	FormBase string
	Next     string // where to go then, without the base
}

// Table is a listing of attempts as its template takes it.
type Table struct {
	Base, Caption string
	Attempts      []Attempt
}

// Table is the listing of the page.
func (v Overview) Table() Table { return Table{v.Base, "Last attempts at proposals", v.Attempts} }

// Table is the listing of the page.
func (v Proposals) Table() Table { return Table{v.Base, "Attempts at proposals", v.Attempts} }
