// Package fakegitea is a Gitea on the loopback interface for tests: an HTTP door to a memhost.Host that answers as a
// Gitea 1.26 was recorded to answer, quirks included. Every request is held against the server's own API description:
// an unknown route, an unknown query parameter or a body field of the wrong type fails the test.
//
// Only what the adapter may call has a route. Merging, reviewing and pushing are done by people, on the Host or through
// its World.
package fakegitea

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// Owner owns every repository of a Server and its Token. He is a site administrator.
const Owner = "joe"

// Server is a fake Gitea. It is safe for concurrent use.
type Server struct {
	t      testing.TB
	host   *memhost.Host
	faults *httpfault.Handler
	origin string // scheme, host and port
	root   string // path below which the server is installed: "" or "/gitea"
	report func(format string, args ...any)
	routes []route

	// What follows is guarded by the host's lock.
	accounts accounts
	repos    map[string]*repoState
	stamps   map[string]stamp
	serial   map[string]int64 // last ids given, by kind
	began    time.Time
	schema   bool // see Describe
}

// accounts are the users and what their tokens may do.
type accounts struct {
	users   []string          // the id is the index + 1
	tokens  map[string]string // login by token
	scopes  []string          // of the Owner's token; nil means all
	account string            // what is wrong with the Owner's account, in the server's words; "" for nothing
}

// New starts a server on a free port of 127.0.0.1, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	return NewAt(t, "")
}

// NewAt starts a server that is installed below a path, such as "/gitea".
func NewAt(t testing.TB, root string) *Server {
	t.Helper()
	s := &Server{
		t: t, root: root, report: t.Errorf,
		accounts: accounts{users: []string{Owner}, tokens: map[string]string{}}, repos: map[string]*repoState{},
		stamps: map[string]stamp{}, serial: map[string]int64{},
	}
	s.accounts.tokens[s.Token()] = Owner
	listening := httptest.NewUnstartedServer(nil)
	s.origin = "http://" + listening.Listener.Addr().String()
	s.host = memhost.New(s.URL())
	s.host.Locked(func() { s.began = s.host.Now() })
	spec, err := described()
	if err != nil {
		t.Fatal(err)
	}
	s.routes = s.table(spec)
	s.faults = httpfault.New(s)
	listening.Config.Handler = s.faults
	listening.Start()
	t.Cleanup(listening.Close)
	return s
}

// URL returns the address of the installation, without a slash at its end. The API is at URL()+"/api/v1".
func (s *Server) URL() string { return s.origin + s.root }

// Token returns a token of the Owner's, who may write to every repository. A wrong token is refused even on public
// repositories, which can be read without any.
func (s *Server) Token() string { return "token-of-" + Owner }

// TokenOf makes a user, if there is none of that name, and returns a token of theirs.
func (s *Server) TokenOf(login string) string {
	token := "token-of-" + login
	s.host.Locked(func() {
		s.userID(login)
		s.accounts.tokens[token] = login
	})
	return token
}

// SetScopes restricts the Owner's token to scopes such as "read:repository" or "write:issue". A write scope includes
// reading. Without arguments the token has all scopes again.
func (s *Server) SetScopes(scopes ...string) {
	s.host.Locked(func() { s.accounts.scopes = slices.Clone(scopes) })
}

// What SetAccount may say is wrong with an account. MustChangePassword goes on with an address.
const (
	Prohibited         = "This account is prohibited from signing in, please contact your site administrator."
	NotActivated       = "This account is not activated."
	MustChangePassword = "You must change your password. Change it at: https://gitea.example/user/change_password"
)

// Describe has the server give the description of its API, as far as clients read it. It tells the number of reviews.
func (s *Server) Describe() { s.host.Locked(func() { s.schema = true }) }

// SetAccount makes the Owner's account one that may not be used; "" makes it good again.
func (s *Server) SetAccount(wrong string) { s.host.Locked(func() { s.accounts.account = wrong }) }

// Host returns the git host behind the server.
func (s *Server) Host() *memhost.Host { return s.host }

// Faults stands in front of the server: it records requests, and can cut, hold and spoil answers.
func (s *Server) Faults() *httpfault.Handler { return s.faults }

// AddRepo makes a public repository of the Owner's whose branch memhost.MainBranch has one commit with the files; with
// none, one without a commit. It defines the labels claude-ops and automated.
func (s *Server) AddRepo(files ...memhost.File) gitprovider.RepoRef {
	var name string
	s.host.Locked(func() { name = fmt.Sprintf("repo-%d", s.next("name")) })
	ref := s.add(name, files...)
	s.Configure(ref, func(set *Settings) {
		set.Labels = []Label{
			{Name: gitprovider.LabelOurs, Color: "1d76db", Description: "Opened by the agent"},
			{Name: "automated", Color: "ededed", Description: "Opened by the agent"},
		}
	})
	return ref
}

// add makes a repository without labels.
func (s *Server) add(name string, files ...memhost.File) gitprovider.RepoRef {
	ref := s.host.Add(Owner, name, files...)
	s.host.Locked(func() { s.state(s.host.Repo(ref)) })
	return ref
}

// Configure hands the settings of a repository to change. It takes the host's lock, so change must not call the server.
func (s *Server) Configure(ref gitprovider.RepoRef, change func(*Settings)) {
	s.t.Helper()
	s.host.Locked(func() {
		repo := s.host.Repo(ref)
		if repo == nil {
			s.t.Fatalf("there is no repository %s to configure", ref)
		}
		st := s.state(repo)
		st.Archived, st.Fork = repo.Archived, repo.Fork
		change(&st.Settings)
		repo.Archived, repo.Fork = st.Archived, st.Fork
		for i := range st.Labels {
			if st.Labels[i].ID == 0 {
				st.Labels[i].ID = s.next("label")
			}
			if st.Labels[i].Color == "" {
				st.Labels[i].Color = "ededed"
			}
		}
		for _, login := range slices.Sorted(maps.Keys(st.Collaborators)) {
			s.userID(login)
		}
	})
}

// Rename gives a repository another owner, who must be known, and another name. Requests for the former name are
// redirected, as after a transfer.
func (s *Server) Rename(ref gitprovider.RepoRef, owner, name string) gitprovider.RepoRef {
	to := s.host.Rename(ref, owner, name)
	s.host.Locked(func() {
		s.userID(owner)
		st := s.repos[ref.String()]
		delete(s.repos, ref.String())
		s.repos[to.String()], st.RenamedFrom = st, ref.String()
	})
	return to
}

// next gives the next id of a kind. The caller holds the host's lock, as for all that follows.
func (s *Server) next(kind string) int64 {
	s.serial[kind]++
	return s.serial[kind]
}

// userID gives the id of a user, who is made if there is none.
func (s *Server) userID(login string) int64 {
	if i := slices.Index(s.accounts.users, login); i >= 0 {
		return int64(i + 1)
	}
	s.accounts.users = append(s.accounts.users, login)
	return int64(len(s.accounts.users))
}

func (s *Server) knows(login string) bool { return slices.Contains(s.accounts.users, login) }

// state returns the server's state of a repository.
func (s *Server) state(repo *memhost.Repo) *repoState {
	key := repo.Ref.String()
	if s.repos[key] == nil {
		s.repos[key] = &repoState{id: s.next("repo"), created: s.began, prs: map[int]*prState{}, objects: newObjects()}
	}
	return s.repos[key]
}

// stampOf tells who made a commit and when. What was pushed behind the server's back is the Owner's, from the time when
// the server began.
func (s *Server) stampOf(id string) stamp {
	if made, known := s.stamps[id]; known {
		return made
	}
	by := signature{who: personOf(Owner), when: s.began}
	return stamp{author: by, committer: by}
}

// Label is a label that a repository defines. Names need not be unique, as on the real server.
type Label struct {
	ID          int64 // 0 when added by Configure: the server gives it one
	Name        string
	Exclusive   bool   // takes the place of another exclusive one with the same words before its last slash
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
	// Signed are the patterns whose branches take only signed commits; the server has no key.
	Signed []string
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
	labels    []int64 // ids, ascending
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

// Harness runs the contract suite over a Server of its own for every repository.
type Harness struct {
	// NewProvider makes the provider under test, for the Owner's token.
	NewProvider func(t testing.TB, s *Server) gitprovider.Provider
}

var _ providertest.Harness = Harness{}

// NewRepo implements providertest.Harness.
func (h Harness) NewRepo(t testing.TB, files ...providertest.File) providertest.World {
	t.Helper()
	s := New(t)
	ref := s.AddRepo(files...)
	s.Configure(ref, func(set *Settings) { set.Collaborators = map[string]string{"ann": "write", "bob": "write"} })
	return s.Host().World(t, ref, h.NewProvider(t, s))
}

// ManyPRs implements providertest.Harness: three pages of the largest size.
func (Harness) ManyPRs() int { return 2*maxLimit + 20 }
