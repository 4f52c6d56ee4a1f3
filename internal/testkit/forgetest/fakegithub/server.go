package fakegithub

import (
	"embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
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

func (s *Server) load() error {
	sdl, err := descriptions.ReadFile("testdata/schema.graphql")
	if err != nil {
		return err
	}
	if s.graph.schema, err = gql.Load(string(sdl)); err != nil {
		return err
	}
	if s.rest.spec, err = describe("testdata/openapi-requests.json"); err != nil {
		return err
	}
	s.rest.routes, err = s.rest.table()
	return err
}

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
