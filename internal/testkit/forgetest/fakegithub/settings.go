package fakegithub

import (
	"path"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// Settings holds the properties of a repository that a test may set; see Server.Configure.
type Settings struct {
	Labels      []string // that the repository defines
	Token       Token
	Private     bool     // only who may read it sees it
	Archived    bool     // takes no writes
	Fork        bool     // a fork of another repository
	Empty       bool     // setting it removes all branches and commits
	RenamedFrom []string // former names as owner/name: 301 in REST, followed in GraphQL
	Protection  Protection
	NoDrafts    bool // the plan has no draft pull requests
	People      People
	CI          CI
	Delays      Delays
}

// Token says what the owner of Server.Token, and the token itself, may do.
type Token struct {
	Permission string // none, read, triage, write, maintain or admin; "write" at first
	// MissingScopes makes the token one that was not granted access to repositories' contents: private ones are not
	// found, and writes are refused.
	MissingScopes bool
	// FineGrained makes the token a fine-grained one, which names no scopes. NotGranted are permissions, such as contents,
	// that it may not write with, whatever its owner may do.
	FineGrained bool
	NotGranted  []string
	// Refusal, if set, is GitHub's message to every request of the token about the repository, such as that the address is
	// not on the organisation's list.
	Refusal string
}

// Protection lists the protections of branches.
type Protection struct {
	// Protected are patterns of branches, as for path.Match, that must not be created, updated or deleted directly.
	Protected []string
	// RequireReview makes pull requests into protected branches, or any if there are none, wait for an approval.
	RequireReview bool
	// Rules are the rules of rulesets for branches that match their pattern, whether or not they exist.
	Rules []Rule
	// Secret is a text that push protection takes for a secret.
	Secret string
}

// Rule is a rule of a ruleset: creation, required_signatures, branch_name_pattern and the like.
type Rule struct {
	Branches   string // as for path.Match
	Type       string
	Parameters map[string]any // nil for none
}

// People lists the people besides the owner of the token.
type People struct {
	Collaborators []string // may write, and be reviewers and assignees
	// Roles are the roles of others: read, triage, write, maintain or admin. Users without one may read what is public.
	Roles map[string]string
	// Associations are GraphQL's names for relations to the repository, such as MEMBER or CONTRIBUTOR: they grant no
	// rights.
	Associations map[string]string
	Bots         []string // logins that do not belong to people
	Teams        []string // slugs
}

// CI holds the results for commits.
type CI struct {
	CheckRuns map[string][]CheckRun // by commit
	Statuses  map[string][]Status   // by commit, newest first
	// NoActions turns GitHub Actions off. Otherwise every file below .github/workflows is a workflow.
	NoActions bool
}

// Delays says what GitHub does not know yet, and what happens at the same time as a request.
type Delays struct {
	// MergeableReads is the number of reads of a pull request after a change that answer that its mergeability is unknown;
	// 1 at first.
	MergeableReads int
	// Heads are commits, by number, that pull requests still show as their head although their branch has moved.
	Heads map[int]string
	// Before, if set, runs before each root field of a mutation, named by the field, on the repository that the mutation
	// is about: what somebody else does in between. It runs under the host's lock.
	Before func(mutation string, repo *memhost.Repo)
}

// CheckRun is the run of a check on a commit.
type CheckRun struct {
	Name       string
	Status     string // queued, in_progress or completed; "" means completed
	Conclusion string // in lower case; "" while it is not completed
	// Workflow and Event are those of the run of GitHub Actions that it belongs to; App is another app instead. Attempt
	// tells runs from those that were triggered again, which GitHub keeps beside each other.
	Workflow, Event, App string
	Attempt              int
	Started              time.Time // zero: at the epoch

	Title, Summary, Text string // of its output; "": none
}

// Status is a service's result for a commit.
type Status struct {
	Context     string
	State       string // error, failure, pending or success
	Description string
	TargetURL   string // "" for none
}

// protects reports whether a branch is protected.
func (s *Settings) protects(branch string) bool { return s.protection(branch) != "" }

// protection returns the pattern that protects a branch, or "".
func (s *Settings) protection(branch string) string {
	for _, pattern := range s.Protection.Protected {
		if ok, err := path.Match(pattern, branch); err == nil && ok {
			return pattern
		}
	}
	return ""
}

// allows reports whether the token's permission is at least as high as the one named.
func (s *Settings) allows(permission string) bool {
	return atLeast(s.Token.Permission, permission)
}

// Configure hands the settings of a repository to change. The changes hold for requests that come later.
func (s *Server) Configure(ref gitprovider.RepoRef, change func(*Settings)) {
	s.host.Locked(func() {
		p := s.repos.place(s.host.Repo(ref))
		p.set.Archived, p.set.Fork = p.repo.Archived, p.repo.Fork
		change(p.set)
		p.repo.Archived, p.repo.Fork = p.set.Archived, p.set.Fork
		if p.set.Empty {
			p.set.Empty = false
			p.repo.Branches, p.repo.Commits = map[string]string{}, map[string]*memhost.Commit{}
		}
		for _, old := range p.set.RenamedFrom {
			s.repos.renamed[lower(old)] = p.repo.Ref
		}
	})
}

// Rename gives a repository another owner and name. Its former name leads to it, as after a transfer.
func (s *Server) Rename(ref gitprovider.RepoRef, owner, name string) gitprovider.RepoRef {
	to := s.host.Rename(ref, owner, name)
	s.Configure(to, func(set *Settings) { set.RenamedFrom = append(set.RenamedFrom, ref.String()) })
	return to
}

// people returns the people of a repository: the owner of the token and the collaborators.
func (s *Settings) people() []string { return append([]string{viewer}, s.People.Collaborators...) }
