package fakegitea

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
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

// answer is the result of a successful route.
type answer struct {
	status int
	body   any    // nil: no body
	page   string // instead of a body: text of the Content-Type in the header
	header http.Header
	// between runs without the host's lock, then the request goes on with then: where the real server checks first and
	// writes later, others may act in the meantime.
	between func()
	then    func() (*answer, error)
}

func ok(body any) *answer      { return &answer{status: http.StatusOK, body: body} }
func created(body any) *answer { return &answer{status: http.StatusCreated, body: body} }

// counted adds the number of all entries, of which the body may be one page.
func (a *answer) counted(total int) *answer {
	return a.with("X-Total-Count", strconv.Itoa(total))
}

func (a *answer) with(name, value string) *answer {
	if value == "" {
		return a
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(name, value)
	return a
}

// refusal is an answer that says no. The real server has several shapes for it.
type refusal struct {
	status  int
	message string
	// detailed refusals have a further member errors, which is null when there are no details.
	detailed bool
	details  []string
	// plain refusals are their message as text/plain; the others are JSON.
	plain bool
	html  bool // plain, as text/html
	empty bool // no body at all
	// internal refusals hide their message from everybody but administrators.
	internal bool
}

// Error makes a refusal an error.
func (r *refusal) Error() string { return strconv.Itoa(r.status) + " " + r.message }

func refuse(status int, message string) *refusal { return &refusal{status: status, message: message} }

func notFound(details ...string) *refusal {
	return &refusal{status: http.StatusNotFound, message: "not found", detailed: true, details: details}
}

func noObject(id, path string) string {
	return "object does not exist [id: " + id + ", rel_path: " + path + "]"
}

func unprocessable(message string) *refusal { return refuse(http.StatusUnprocessableEntity, message) }

func forbidden(message string) *refusal { return refuse(http.StatusForbidden, message) }

func silentlyForbidden() *refusal { return &refusal{status: http.StatusForbidden, empty: true} }

func internalError(message string) *refusal {
	return &refusal{status: http.StatusInternalServerError, message: message, internal: true}
}

// panicked returns the server's answer when its own code panics.
func panicked() *refusal {
	return &refusal{status: http.StatusInternalServerError, html: true, plain: true,
		message: "<!DOCTYPE html>\n<html><head><title>Internal Server Error</title></head><body>500</body></html>\n"}
}

func noSuchRoute() *refusal {
	return &refusal{status: http.StatusNotFound, message: "404 page not found\n", plain: true}
}

// body renders the refusal. docs is the address that every JSON refusal names.
func (r *refusal) body(docs string, admin bool) map[string]any {
	message := r.message
	if r.internal && !admin {
		message = ""
	}
	out := map[string]any{"message": message, "url": docs}
	if r.detailed {
		out["errors"] = r.details
	}
	return out
}

const jsonType = "application/json;charset=utf-8"

func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n'))
}

func (a *answer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.page)
		return
	}
	writeJSON(w, a.status, a.body)
}

// The server's page sizes. A larger limit is silently reduced.
const (
	defaultLimit   = 30
	maxLimit       = 50
	maxTreeEntries = 1000
)

// page is the part of a list that was asked for.
type page struct{ number, limit int }

func number(query url.Values, name string) int {
	n, err := strconv.Atoi(query.Get(name))
	if err != nil {
		return 0
	}
	return n
}

func pageOf(query url.Values) page {
	p := page{number: max(number(query, "page"), 1), limit: number(query, "limit")}
	if p.limit <= 0 {
		p.limit = defaultLimit
	}
	p.limit = min(p.limit, maxLimit)
	return p
}

// lazyPageOf is pageOf for lists that are not paged at all unless a page is requested, whatever the limit.
func lazyPageOf(query url.Values) page {
	if number(query, "page") <= 0 {
		return page{number: 1, limit: math.MaxInt32}
	}
	return pageOf(query)
}

// cut gives one page of a list, empty past its end.
func cut[T any](list []T, p page) []T {
	from := min((p.number-1)*p.limit, len(list))
	to := min(from+p.limit, len(list))
	out := make([]T, 0, to-from)
	return append(out, list[from:to]...)
}

// link returns the Link header of a page, "" when one page holds everything. Past the end it reads as on the last page.
func (c *call) link(p page, total int) string {
	last := (total + p.limit - 1) / p.limit
	if last <= 1 {
		return ""
	}
	current := min(p.number, last)
	var parts []string
	add := func(to int, rel string) {
		query := url.Values{}
		for name, values := range c.query {
			query[name] = values
		}
		query.Set("page", strconv.Itoa(to))
		parts = append(parts, "<"+c.s.origin+c.escapedPath+"?"+query.Encode()+`>; rel="`+rel+`"`)
	}
	if current < last {
		add(current+1, "next")
		add(last, "last")
	}
	if current > 1 {
		add(1, "first")
		add(current-1, "prev")
	}
	return strings.Join(parts, ",")
}
