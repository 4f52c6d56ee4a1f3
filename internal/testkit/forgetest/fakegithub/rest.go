package fakegithub

import (
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
