package fakegithub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxBody bounds, in bytes, what a request may carry; GitHub's own bound is of this order.
const maxBody = 100 << 20

// handler answers a request about a repository, under the host's lock.
type handler func(p *place, a *exchange)

// route is one operation of REST.
type route struct {
	name    string // method and path template, as the description has it
	method  string
	parts   []string
	literal int // parts that are not parameters
	handle  handler
	account func(*exchange) // instead of handle where the route is about no repository
}

// table puts the handlers to their routes. Every operation of the description has one.
func (r *restRouter) table() ([]route, error) {
	handlers := map[string]handler{}
	for _, group := range []map[string]handler{
		repoRoutes(), branchRoutes(), refRoutes(), treeRoutes(), commitRoutes(), pullRoutes(), pullPartRoutes(),
		peopleRoutes(), labelRoutes(), checkRoutes(), actionsRoutes(), reviewRoutes(), mergeRoutes(), adminRoutes(),
	} {
		for name, h := range group {
			handlers[name] = h
		}
	}
	accounts := r.s.accounts.routes()
	maps.Copy(accounts, r.s.apps.routes())
	var out []route
	for _, name := range r.spec.Routes() {
		if handlers[name] == nil && accounts[name] == nil {
			return nil, fmt.Errorf("nothing handles %s", name)
		}
		method, path, _ := strings.Cut(name, " ")
		r := route{
			name: name, method: method, parts: strings.Split(path[1:], "/"), handle: handlers[name], account: accounts[name],
		}
		for _, part := range r.parts {
			if part[0] != '{' {
				r.literal++
			}
		}
		out = append(out, r)
		delete(handlers, name)
		delete(accounts, name)
	}
	for name := range handlers {
		return nil, fmt.Errorf("the description has no %s", name)
	}
	for name := range accounts {
		return nil, fmt.Errorf("the description has no %s", name)
	}
	slices.SortStableFunc(out, func(a, b route) int { return b.literal - a.literal })
	return out, nil
}

// rest answers a request that is not GraphQL.
func (r *restRouter) serve(a *exchange) {
	if !r.recognise(a) {
		a.notFound()
		return
	}
	found := a.find()
	if wrong := r.spec.CheckRequest(a.route, a.path, a.query, a.body); len(wrong) > 0 {
		r.s.t.Errorf("a request does not fit GitHub's description: %s %s: %s\nbody: %.500s", a.r.Method, a.r.URL, wrong,
			a.body)
	}
	if a.by.who != viewer && !takenFromAll(a.route) && a.route != conversionRoute {
		r.s.t.Errorf("the fake GitHub takes %s from the owner of Token only, not from %s", a.route, a.by.who)
	}
	if found.account != nil {
		found.account(a)
		return
	}
	r.s.as(a, func() { r.inRepo(a, found.handle) })
}

// recognise finds the route of a request and reads its parts.
func (r *restRouter) recognise(a *exchange) bool {
	body, err := io.ReadAll(io.LimitReader(a.r.Body, maxBody))
	a.body = body
	var queryErr error
	a.query, queryErr = url.ParseQuery(a.r.URL.RawQuery)
	parts := strings.Split(strings.TrimPrefix(a.r.URL.EscapedPath(), "/"), "/")
	r.s.host.Locked(func() { parts = r.byName(parts) })
	for _, known := range r.routes {
		if path, ok := match(known.parts, parts); ok && known.method == a.r.Method && err == nil && queryErr == nil {
			a.route, a.path = known.name, path
			return true
		}
	}
	r.s.t.Errorf("a request to no route of GitHub's that the fake knows: %s %s", a.r.Method, a.r.URL)
	return false
}

// byName spells the path /repositories/ID, to which former names are redirected, with the name of today.
func (r *restRouter) byName(parts []string) []string {
	if len(parts) < 2 || parts[0] != "repositories" {
		return parts
	}
	id, err := strconv.Atoi(parts[1])
	if repo := r.s.repos.byID[id]; err == nil && repo != nil {
		return append([]string{"repos", repo.Ref.Owner, repo.Ref.Name}, parts[2:]...)
	}
	return parts
}

// find returns the route that was recognised.
func (a *exchange) find() route {
	i := slices.IndexFunc(a.s.rest.routes, func(r route) bool { return r.name == a.route })
	return a.s.rest.routes[i]
}

// match holds the parts of a path against a template. Parameters that GitHub takes with slashes take one part or more.
func match(template, parts []string) (map[string]string, bool) {
	if len(template) == 0 {
		return map[string]string{}, len(parts) == 0
	}
	if len(parts) == 0 {
		return nil, false
	}
	name, isParam := strings.CutPrefix(template[0], "{")
	if !isParam {
		if template[0] != parts[0] {
			return nil, false
		}
		return match(template[1:], parts[1:])
	}
	name = strings.TrimSuffix(name, "}")
	most := 1
	if slices.Contains([]string{"ref", "branch", "path"}, name) {
		most = len(parts)
	}
	for n := most; n > 0; n-- {
		rest, ok := match(template[1:], parts[n:])
		value, err := url.PathUnescape(strings.Join(parts[:n], "/"))
		if ok && err == nil && value != "" {
			rest[name] = value
			return rest, true
		}
	}
	return nil, false
}

// inRepo answers a request about a repository: it follows renames, and hides what may not be seen.
func (r *restRouter) inRepo(a *exchange, handle handler) {
	owner, name := a.path["owner"], a.path["repo"]
	p := r.s.repos.find(owner, name, false)
	if p == nil {
		if p = r.s.repos.find(owner, name, true); p == nil {
			a.notFound()
			return
		}
		_, rest, _ := strings.Cut(strings.TrimPrefix(a.r.URL.EscapedPath(), "/repos/"+owner+"/"), "/")
		to := fmt.Sprintf("%s/repositories/%d", r.s.URL(), p.id)
		if rest != "" {
			to += "/" + rest
		}
		a.header.Set("Location", to)
		status := http.StatusMovedPermanently
		if a.r.Method != http.MethodGet {
			status = http.StatusTemporaryRedirect
		}
		a.reply(status, object{
			"message": "Moved Permanently", "url": to, "documentation_url": "https://docs.github.com/rest",
		})
		return
	}
	if p.set.Private && !p.rights().allows(a.by.who, "read") || p.rights().foreign() {
		a.notFound()
		return
	}
	if no := p.rights().refused(); no != nil {
		no.rest(a)
		return
	}
	if no := p.rights().barred("read", readNeeds(a.route)); no != nil && a.r.Method == http.MethodGet {
		no.rest(a)
		return
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(a.r.URL.EscapedPath(), "/repos/"+owner+"/"), "/")
	if strings.HasPrefix(a.r.URL.Path, "/repositories/") {
		a.place = a.r.URL.EscapedPath()
	} else {
		a.place = fmt.Sprintf("/repositories/%d/%s", p.id, rest)
	}
	handle(p, a)
}

// object is a JSON object of REST.
type object = map[string]any

// asker identifies who makes a request.
type asker struct {
	who   string    // login
	grant *AppToken // the token, if it is one of an app's installation
}

// exchange is one request and the answer that is being made for it.
type exchange struct {
	s      *Server
	r      *http.Request
	by     asker
	route  string            // method and path template
	path   map[string]string // by parameter, unescaped
	query  url.Values
	place  string // the address of what was asked for, by the repository's id
	body   []byte
	header http.Header
	status int
	answer any    // JSON, unless raw is set
	raw    []byte // sent as it is
}

// reply sets the answer.
func (a *exchange) reply(status int, answer any) { a.status, a.answer = status, answer }

// fail sets an answer that is an error. errs describe the errors of single fields: objects, or sentences.
func (a *exchange) fail(status int, message string, errs ...any) {
	body := object{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}
	if len(errs) > 0 {
		body["errors"] = errs
	}
	a.reply(status, body)
}

// notFound is GitHub's refusal for what does not exist and for what may not be seen.
func (a *exchange) notFound() { a.fail(http.StatusNotFound, "Not Found") }

// invalid refuses a body for a reason about a field.
func (a *exchange) invalid(resource, field, code string) {
	a.fail(http.StatusUnprocessableEntity, "Validation Failed", object{"resource": resource, "field": field, "code": code})
}

// custom refuses a body for a reason that has a sentence of its own.
func (a *exchange) custom(resource, message string) {
	a.fail(http.StatusUnprocessableEntity, "Validation Failed",
		object{"resource": resource, "code": "custom", "message": message})
}

// decode reads the body, which has passed the description's schema.
func (a *exchange) decode(into any) bool {
	if len(a.body) == 0 {
		return true
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		a.fail(http.StatusBadRequest, "Problems parsing JSON")
		return false
	}
	return true
}

// number reads a number in the path; one that is none is never found.
func (a *exchange) number(name string) int {
	n, err := strconv.Atoi(a.path[name])
	if err != nil {
		return 0
	}
	return n
}

// page cuts a list as the query asks for, 30 at a time unless told otherwise and never more than 100, and links the
// pages around it.
func page[T any](a *exchange, items []T) []T {
	per, number := a.queryInt("per_page", 30), a.queryInt("page", 1)
	if per < 1 || per > 100 {
		per = 100
	}
	last := max(1, (len(items)+per-1)/per)
	var links []string
	link := func(to int, rel string) {
		links = append(links, fmt.Sprintf(`<%s%s?%s>; rel="%s"`, a.s.URL(), a.place, a.pageQuery(to), rel))
	}
	if number > 1 {
		link(number-1, "prev")
	}
	if number < last {
		link(number+1, "next")
		link(last, "last")
	}
	if number > 1 {
		link(1, "first")
	}
	if len(links) > 0 {
		a.header.Set("Link", strings.Join(links, ", "))
	}
	from := min(len(items), (number-1)*per)
	return items[from:min(len(items), from+per)]
}

// pageQuery returns the query of the request with another page, which stands last if none was named.
func (a *exchange) pageQuery(to int) string {
	var out []string
	page := "page=" + strconv.Itoa(to)
	for _, part := range strings.Split(a.r.URL.RawQuery, "&") {
		switch {
		case strings.HasPrefix(part, "page="):
			out, page = append(out, page), ""
		case part != "":
			out = append(out, part)
		}
	}
	if page != "" {
		out = append(out, page)
	}
	return strings.Join(out, "&")
}

func (a *exchange) queryInt(name string, otherwise int) int {
	n, err := strconv.Atoi(a.query.Get(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return n
}

// send writes the answer.
func (a *exchange) send(w http.ResponseWriter) {
	out := a.raw
	if out == nil && a.answer != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(a.answer); err != nil {
			a.s.t.Errorf("the fake GitHub cannot write its answer to %s: %v", a.route, err)
		}
		out = b.Bytes()
	}
	if a.s.rest.answers != nil && a.route != "" && a.raw == nil {
		if err := a.s.rest.answers.CheckResponse(a.route, a.status, out); err != nil {
			a.s.t.Errorf("the fake GitHub's answer does not fit the description: %v", err)
		}
	}
	if len(out) > 0 && a.status < http.StatusMultipleChoices {
		w.Header().Set("Cache-Control", "private, max-age=60, s-maxage=60")
	}
	if len(out) == 0 {
		w.Header().Del("Content-Type")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(out) // a client that has gone needs no answer
}
