package fakegitea

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
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
	s.routes = s.table(newSpec(t))
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
