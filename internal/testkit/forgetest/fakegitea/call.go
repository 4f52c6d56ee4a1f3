package fakegitea

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// apiRoot is the path of the API, below the installation's path.
const apiRoot = "/api/v1"

// access is a viewer's permission in a repository. The order counts.
type access int

const (
	noAccess access = iota
	readAccess
	writeAccess
	adminAccess
)

// call is one request on its way through a route.
type call struct {
	s           *Server
	method      string
	escapedPath string
	params      map[string]string
	query       url.Values
	body        []byte
	viewer      string      // login, "" for the anonymous
	at          *repository // of routes below one
	json        *rendering
}

// repository is a repository as the viewer of a request sees it.
type repository struct {
	s      *Server
	viewer string
	repo   *memhost.Repo
	st     *repoState
	access access
}

// rendering makes what the API shows to a viewer.
type rendering struct {
	s      *Server
	viewer string
	at     *repository // of routes below one
}

// admin reports whether the viewer is a site administrator. An administrator's token for reading counts as anybody's.
func (j *rendering) admin() bool {
	return j.viewer == Owner && (j.at == nil || !j.at.st.ReadOnly)
}

func (s *Server) docs() string { return s.URL() + "/api/swagger" }

// authenticate finds out who asks. A token that is wrong is refused whatever is asked for.
func (s *Server) authenticate(r *http.Request) (string, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return "", nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	login, known := s.accounts.tokens[token]
	if !known || (!strings.EqualFold(scheme, "token") && !strings.EqualFold(scheme, "Bearer")) {
		return "", refuse(http.StatusUnauthorized, "user does not exist [uid: 0, name: ]")
	}
	return login, nil
}

// maySignIn refuses a user whose account is not in order, whatever the token may do.
func (s *Server) maySignIn(login string) error {
	if s.accounts.account != "" && login == Owner {
		return forbidden(s.accounts.account)
	}
	return nil
}

// inScope refuses what the token's scopes do not hold.
func (c *call) inScope(category string) error {
	if c.viewer != Owner || c.s.accounts.scopes == nil || category == "" {
		return nil
	}
	need := "read:" + category
	if c.method != http.MethodGet {
		need = "write:" + category
	}
	for _, have := range c.s.accounts.scopes {
		if have == "all" || have == need || have == "write:"+category {
			return nil
		}
	}
	return forbidden(fmt.Sprintf("token does not have at least one of required scope(s), required=[%s], token scope=%s",
		need, strings.Join(c.s.accounts.scopes, ",")))
}

// enter finds the repository of the request, and what the viewer may do there. The target is where a renamed one is.
func (c *call) enter() (target string, err error) {
	ref := gitprovider.RepoRef{Owner: c.params["owner"], Name: c.params["repo"]}
	repo := c.s.host.Repo(ref)
	if repo == nil {
		if renamed := c.s.renamed(ref); renamed != nil {
			return c.moved(ref, renamed), nil
		}
		if !c.s.knows(strings.ToLower(ref.Owner)) {
			return "", &refusal{status: http.StatusNotFound, message: "GetUserByName", detailed: true,
				details: []string{"user redirect does not exist [name: " + ref.Owner + "]"}}
		}
		return "", notFound()
	}
	c.at = &repository{s: c.s, viewer: c.viewer, repo: repo, st: c.s.state(repo)}
	c.json.at = c.at
	if c.at.access = c.at.accessTo(); c.at.access == noAccess {
		return "", notFound()
	}
	if c.viewer == Owner && c.at.st.Private && slices.Contains(c.s.accounts.scopes, "public-only") {
		return "", forbidden("token scope is limited to public repos")
	}
	c.at.settle()
	return "", nil
}

func (r *repository) accessTo() access {
	switch {
	case r.viewer == Owner && !r.st.ReadOnly:
		return adminAccess
	case r.st.Collaborators[r.viewer] == "write":
		return writeAccess
	case r.viewer == Owner, r.st.Collaborators[r.viewer] == "read", !r.st.Private:
		return readAccess
	default:
		return noAccess
	}
}

func (s *Server) renamed(ref gitprovider.RepoRef) *memhost.Repo {
	for name, st := range s.repos {
		owner, now, _ := strings.Cut(name, "/")
		former := st.RenamedFrom
		if former != "" && !strings.Contains(former, "/") {
			former = owner + "/" + former
		}
		if former != "" && strings.EqualFold(former, ref.String()) {
			return s.host.Repo(gitprovider.RepoRef{Owner: owner, Name: now})
		}
	}
	return nil
}

// moved returns the address of the request in a renamed repository, without scheme and host.
func (c *call) moved(from gitprovider.RepoRef, repo *memhost.Repo) string {
	target := strings.Replace(c.escapedPath, "/repos/"+from.String(), "/repos/"+repo.Ref.String(), 1)
	if len(c.query) > 0 {
		target += "?" + c.query.Encode()
	}
	return target
}

// decode reads the body. What does not fit is refused in the server's words.
func (c *call) decode(into any) error {
	err := json.Unmarshal(c.body, into)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType):
		value := wrongType.Value
		if value == "string" && wrongType.Type.Kind() == reflect.Int64 {
			value = `number "` // the server's decoder takes it for one that begins badly
		}
		return unprocessable(fmt.Sprintf("[]: json: cannot unmarshal %s into Go struct field %s.%s of type %s",
			value, capital(wrongType.Struct), capital(wrongType.Field), wrongType.Type))
	default:
		return unprocessable("[]: json: " + err.Error())
	}
}

// capital turns our names into the server's, which are exported ones.
func capital(name string) string {
	if name == "" {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// required refuses the first member that is missing.
func required(members ...string) error {
	for i := 0; i+1 < len(members); i += 2 {
		if members[i+1] == "" {
			return unprocessable("[" + members[i] + "]: Required")
		}
	}
	return nil
}

// signedIn refuses the anonymous.
func (c *call) signedIn() error {
	if c.viewer == "" {
		return refuse(http.StatusUnauthorized, "token is required")
	}
	return nil
}

// writer refuses those who may not write.
func (r *repository) writer() error {
	if r.access < writeAccess {
		return forbidden("user should have a permission to write to a repo")
	}
	return nil
}

// inUse refuses archived repositories.
func (r *repository) inUse() error {
	if r.repo.Archived {
		return refuse(http.StatusLocked, r.repo.Ref.String()+" is archived")
	}
	return nil
}
