// Package fakegithub is a GitHub that keeps everything in memory: REST and GraphQL over HTTP on this machine, as doors
// to a memhost.Host.
//
// It is strict with its clients. Every REST request is checked against GitHub's published OpenAPI description, and one
// that does not fit, or that no route takes, fails the test. Every GraphQL document is validated against GitHub's
// published schema and answered with errors as GitHub does. Both are trimmed to what is used here; see testdata. What
// is in the trimmed schema is answered; what an adapter needs besides must be added to both.
//
// The adapter's token is one of ops-bot's. Clients may also act as GitHub's users do around it: make and remove
// repositories of ops-bot's and of one organisation, invite other accounts, and review as those; see Server.TokenOf.
//
// Statuses, wordings and error types are those that GitHub has been seen to give. Where it gives different ones
// depending on the kind of token, those of a fine-grained token are given.
package fakegithub

import (
	"embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/apispec"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

//go:embed testdata/schema.graphql testdata/openapi-requests.json testdata/openapi-answers.json
var descriptions embed.FS

// resetAfter is the end of the rate limit's window, after the epoch.
const resetAfter = time.Hour

// viewer is the owner of the token, and owner the owner of the repositories that AddRepo makes.
const (
	viewer = "ops-bot"
	owner  = "octo"
)

// Server is a fake GitHub. It is safe for concurrent use. The host's lock guards what its parts hold.
type Server struct {
	t        testing.TB
	http     *httptest.Server
	faults   *httpfault.Handler
	host     *memhost.Host
	served   int // requests
	lagging  bool
	repos    *repositories
	accounts *accounts
	apps     *appInstallation
	rest     *restRouter
	graph    *graphServer
}

// repositories are the repositories of the host, as GitHub knows them.
type repositories struct {
	s       *Server
	states  map[*memhost.Repo]*state
	byID    map[int]*memhost.Repo
	renamed map[string]gitprovider.RepoRef // by former owner/name in lower case
	made    int                            // repositories of AddRepo
	initial string                         // default branch of repositories that clients make
	making  sync.Mutex                     // held while a repository is made; the host's lock is not
}

// accounts are the holders of tokens, and invitations to repositories.
type accounts struct {
	s           *Server
	tokens      map[string]string   // login by token
	invited     int                 // invitations so far
	invitations map[int]*invitation // those that wait for an answer, by id
}

// appInstallation is the one app that the server knows, and its tokens.
type appInstallation struct {
	s         *Server
	app       *App
	appTokens []*AppToken
	code      string    // for which a manifest was accepted, until it is exchanged; "" for none
	key       string    // the private key of the app that code is for, in PEM
	acting    *AppToken // the one of the request that is being answered, if it is one
}

// restRouter answers REST.
type restRouter struct {
	s      *Server
	spec   *apispec.Spec // of requests
	routes []route
	// answers, if not nil, is the specification that the server checks its own answers against.
	answers *apispec.Spec
}

// graphServer answers GraphQL.
type graphServer struct {
	s      *Server
	schema *gql.Schema
	old    bool
	limit  int // of what a query may cost: 1 for each pull request, 10 for each comparison; 0: none
	spent  int // by the query that is being answered
}

// MakeOld makes the server one that has no updateRefs yet, as some Enterprise Servers.
func (s *Server) MakeOld() { s.host.Locked(func() { s.graph.old = true }) }

// LimitQueries makes GraphQL give up on queries that cost more: 1 for each pull request that they ask for, and 10 for
// each whose files they want. 0 means no limit.
func (s *Server) LimitQueries(cost int) { s.host.Locked(func() { s.graph.limit = cost }) }

// spend counts a cost; an error says that the query is too much.
func (g *graphServer) spend(cost int) error {
	if g.spent += cost; g.limit == 0 || g.spent <= g.limit {
		return nil
	}
	return &gql.Error{Type: "RESOURCE_LIMITS_EXCEEDED", Message: "Resource limits for this query exceeded."}
}

// New starts a server without repositories; it listens on 127.0.0.1 and ends with the test. Requests that GitHub's
// description does not know fail the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, host: memhost.New("https://github.example")}
	s.repos = &repositories{
		s: s, states: map[*memhost.Repo]*state{}, byID: map[int]*memhost.Repo{}, renamed: map[string]gitprovider.RepoRef{},
		initial: memhost.MainBranch,
	}
	s.accounts = &accounts{s: s, tokens: map[string]string{s.Token(): viewer}, invitations: map[int]*invitation{}}
	s.apps, s.rest, s.graph = &appInstallation{s: s}, &restRouter{s: s}, &graphServer{s: s}
	if err := s.load(); err != nil {
		t.Fatalf("starting the fake GitHub: %v", err)
	}
	s.faults = httpfault.New(http.HandlerFunc(s.serve))
	s.http = httptest.NewServer(s.faults)
	t.Cleanup(s.http.Close)
	return s
}

func (s *Server) load() (err error) {
	if s.graph.schema, err = graphSchema(); err != nil {
		return err
	}
	if s.rest.spec, err = requests(); err != nil {
		return err
	}
	s.rest.routes, err = s.rest.table()
	return err
}

//nolint:gochecknoglobals // read once for all servers of the process; never changed
var graphSchema = sync.OnceValues(func() (*gql.Schema, error) {
	sdl, err := descriptions.ReadFile("testdata/schema.graphql")
	if err != nil {
		return nil, err
	}
	return gql.Load(string(sdl))
})

//nolint:gochecknoglobals // read once for all servers of the process; never changed
var requests = sync.OnceValues(func() (*apispec.Spec, error) { return describe("testdata/openapi-requests.json") })

func describe(file string) (*apispec.Spec, error) {
	raw, err := descriptions.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return apispec.Load(raw)
}

// URL returns the root of the API, as https://api.github.com is: REST is below it, GraphQL at URL()+"/graphql".
func (s *Server) URL() string { return s.http.URL }

// Token returns the token that may use the API; what it may do is in each repository's Settings. Others but those of
// TokenOf are refused.
func (s *Server) Token() string { return "ghp_fakefakefakefakefakefakefakefakefake" }

// SetInitialBranch changes which branch repositories have at first that clients make; it is memhost.MainBranch until
// then. On GitHub that is a setting of the account.
func (s *Server) SetInitialBranch(name string) { s.host.Locked(func() { s.repos.initial = name }) }

// Host returns the host of the repositories.
func (s *Server) Host() *memhost.Host { return s.host }

// Faults stands in front of the server: it makes it misbehave, and knows what was asked.
func (s *Server) Faults() *httpfault.Handler { return s.faults }

// AddRepo makes a repository with a name of its own, whose branch memhost.MainBranch has one commit with the files;
// with none, one without a commit. It defines the labels "claude-ops" and "automated".
func (s *Server) AddRepo(files ...memhost.File) gitprovider.RepoRef {
	var name string
	s.host.Locked(func() {
		s.repos.made++
		name = fmt.Sprintf("home-cluster-%d", s.repos.made)
	})
	return s.host.Add(owner, name, files...)
}

// OpenFromFork opens a pull request into the default branch as somebody else would, from a branch of their fork that
// has one commit with the files.
func (s *Server) OpenFromFork(ref gitprovider.RepoRef, who, branch, title string, files ...memhost.File) int {
	s.t.Helper()
	number := 0
	err := s.host.Act(ref, func(repo *memhost.Repo) error {
		head := memhost.ForkBranch(who, branch)
		repo.Write(head, title, files)
		number = s.host.Open(repo, gitprovider.PullRequestSpec{Repo: ref, Base: repo.Default, Head: head,
			Title: title}).Number
		return nil
	})
	if err != nil {
		s.t.Fatalf("opening a pull request from a fork: %v", err)
	}
	return number
}

// serve answers every request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	a := s.receive(w, r)
	switch {
	case s.apps.page(w, r):
		return
	case strings.HasPrefix(r.URL.Path, "/app-manifests/"): // the code is the credential
		s.rest.serve(a)
	case !s.accounts.admit(a):
		a.header.Del("X-OAuth-Scopes")
	case a.by.grant != nil && r.URL.Path == "/user":
		a.fail(http.StatusForbidden, "Resource not accessible by integration")
	case r.URL.Path == "/graphql" && a.by.who != viewer:
		a.s.t.Errorf("the fake GitHub speaks GraphQL with the owner of Token only, not with %s", a.by.who)
		a.notFound()
	case r.URL.Path == "/graphql":
		s.graph.serve(a)
	default:
		s.rest.serve(a)
	}
	a.send(w)
}

// receive begins an answer with the headers that every answer has.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) *exchange {
	a := &exchange{s: s, r: r, header: w.Header(), status: http.StatusOK}
	s.host.Locked(func() {
		s.served++
		a.header.Set("X-GitHub-Request-Id", fmt.Sprintf("FA4E:%04X", s.served))
		resource := "core"
		if r.URL.Path == "/graphql" {
			resource = "graphql"
		}
		a.header.Set("X-RateLimit-Limit", "5000")
		a.header.Set("X-RateLimit-Remaining", fmt.Sprint(5000-s.served%5000))
		a.header.Set("X-RateLimit-Used", fmt.Sprint(s.served%5000))
		a.header.Set("X-RateLimit-Reset", fmt.Sprint(epoch().Add(resetAfter).Unix()))
		a.header.Set("X-RateLimit-Resource", resource)
		if scopes := s.scopes(); scopes != "" {
			a.header.Set("X-OAuth-Scopes", scopes)
		}
	})
	a.header.Set("X-GitHub-Media-Type", "github.v3; format=json")
	a.header.Set("Content-Type", "application/json; charset=utf-8")
	return a
}

// scopes returns the scopes of the token, "" for a fine-grained one. Tests have one token: if it lacks scopes for some
// repository, it lacks them.
func (s *Server) scopes() string {
	for _, st := range s.repos.states {
		if st.set.Token.FineGrained {
			return ""
		}
		if st.set.Token.MissingScopes {
			return "read:user"
		}
	}
	return "repo, workflow"
}

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

// Harness runs the contract suite over fake GitHubs, one for each repository.
type Harness struct {
	// NewProvider makes the provider under test for a server.
	NewProvider func(t testing.TB, s *Server) gitprovider.Provider
	// Lag makes new objects unknown for a while; see Server.Lag.
	Lag bool
}

var _ providertest.Harness = Harness{}

// NewRepo implements providertest.Harness.
func (h Harness) NewRepo(t testing.TB, files ...memhost.File) providertest.World {
	s := New(t)
	if h.Lag {
		s.Lag()
	}
	ref := s.AddRepo(files...)
	s.Configure(ref, func(set *Settings) { set.People.Collaborators = []string{"ann", "bob"} })
	return s.host.World(t, ref, h.NewProvider(t, s))
}

// ManyPRs implements providertest.Harness: more than the largest page, which has 100.
func (Harness) ManyPRs() int { return 120 }
