package fakegitea

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// route is one method of one path template. A segment {name} stands for one segment, {name...} for the rest.
type route struct {
	method, template string
	handle           func(*call) (*answer, error)
	scope            string // category of token scopes; "" for routes that need none
	check            func(query url.Values, body []byte) []string
}

// table lists the routes: those that the adapter needs, and nothing that merges, reviews or pushes.
func (s *Server) table(spec *spec) []route {
	const repo = "/repos/{owner}/{repo}"
	var out []route
	add := func(method, template, scope string, handle func(*call) (*answer, error)) {
		out = append(out, route{method, template, handle, scope, spec.checks(s.t, method, template)})
	}
	get, post, patch, put := http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut
	add(get, "/version", "", (*call).version)
	add(get, "/settings/api", "", (*call).apiSettings)
	add(get, "/user", "user", (*call).self)
	add(get, repo, "repository", (*call).getRepo)
	add(get, repo+"/assignees", "repository", (*call).listAssignees)
	add(get, repo+"/branches", "repository", (*call).listBranches)
	add(get, repo+"/branches/{branch...}", "repository", (*call).getBranch)
	add(http.MethodDelete, repo+"/branches/{branch...}", "repository", (*call).deleteBranch)
	add(get, repo+"/branch_protections", "repository", (*call).listProtections)
	add(get, repo+"/branch_protections/{name}", "repository", (*call).getProtection)
	add(get, repo+"/git/trees/{sha}", "repository", (*call).getTree)
	add(get, repo+"/git/blobs/{sha}", "repository", (*call).getBlob)
	add(get, repo+"/git/commits/{sha}", "repository", (*call).getCommit)
	add(get, repo+"/git/refs", "repository", (*call).listRefs)
	add(get, repo+"/git/refs/{ref...}", "repository", (*call).listRefs)
	add(get, repo+"/contents", "repository", (*call).getContents)
	add(post, repo+"/contents", "repository", (*call).changeFiles)
	add(get, repo+"/contents/{filepath...}", "repository", (*call).getContents)
	add(get, repo+"/file-contents", "repository", (*call).getFilesByQuery)
	add(post, repo+"/file-contents", "repository", (*call).getFilesByBody)
	add(get, repo+"/compare/{basehead}", "repository", (*call).compare)
	add(get, repo+"/pulls", "repository", (*call).listPulls)
	add(post, repo+"/pulls", "repository", (*call).openPull)
	add(get, repo+"/pulls/{index}", "repository", (*call).getPull)
	add(patch, repo+"/pulls/{index}", "repository", (*call).editPull)
	add(get, repo+"/pulls/{index}/files", "repository", (*call).listFiles)
	add(get, repo+"/pulls/{index}/reviews", "repository", (*call).listReviews)
	add(post, repo+"/pulls/{index}/requested_reviewers", "repository", (*call).requestReviews)
	add(get, repo+"/pulls/{base}/{head}", "repository", (*call).findPull)
	add(get, repo+"/issues", "issue", (*call).listIssues)
	add(patch, repo+"/issues/{index}", "issue", (*call).editIssue)
	add(get, repo+"/issues/{index}/comments", "issue", (*call).listComments)
	add(get, repo+"/issues/{index}/labels", "issue", (*call).listIssueLabels)
	add(post, repo+"/issues/{index}/labels", "issue", (*call).addIssueLabels)
	add(put, repo+"/issues/{index}/labels", "issue", (*call).replaceIssueLabels)
	add(get, repo+"/labels", "issue", (*call).listLabels)
	add(post, repo+"/labels", "issue", (*call).createLabel)
	add(get, repo+"/commits/{ref}/status", "repository", (*call).combinedStatus)
	add(get, repo+"/commits/{ref}/statuses", "repository", (*call).listStatuses)
	add(get, repo+"/actions/workflows", "repository", (*call).listWorkflows)
	return out
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	found, params, status := s.find(r)
	if status != 0 {
		s.report("fake Gitea: %s %s has no route (%d)", r.Method, r.URL.EscapedPath(), status)
		if status == http.StatusMethodNotAllowed {
			w.WriteHeader(status)
			return
		}
		s.refuse(w, noSuchRoute(), false)
		return
	}
	for _, problem := range found.check(r.URL.Query(), body) {
		s.report("fake Gitea: %s %s: %s", r.Method, r.URL.Path, problem)
	}
	c := &call{s: s, method: r.Method, escapedPath: r.URL.EscapedPath(), params: params, query: r.URL.Query(), body: body}
	ans, err := s.serve(c, found, r)
	if err != nil {
		var no *refusal
		if !errors.As(err, &no) {
			no = internalError(err.Error())
		}
		s.refuse(w, no, c.admin())
		return
	}
	ans.write(w)
}

// serve answers a request. The host is locked, but for what the answer wants to happen between checking and acting.
func (s *Server) serve(c *call, found *route, r *http.Request) (ans *answer, err error) {
	s.host.Locked(func() { ans, err = c.serve(found, r) })
	if err != nil || ans.then == nil {
		return ans, err
	}
	if ans.between != nil {
		ans.between()
	}
	then := ans.then
	s.host.Locked(func() { ans, err = then() })
	return ans, err
}

func (c *call) serve(found *route, r *http.Request) (*answer, error) {
	var err error
	if c.viewer, err = c.s.authenticate(r); err != nil {
		return nil, err
	}
	if err := c.s.maySignIn(c.viewer); err != nil {
		return nil, err
	}
	if err := c.inScope(found.scope); err != nil {
		return nil, err
	}
	if c.params["repo"] != "" {
		target, err := c.enter()
		if err != nil {
			return nil, err
		}
		if target != "" {
			return redirect(c.method, target), nil
		}
	}
	if c.method != http.MethodGet && !strings.HasSuffix(found.template, "/file-contents") {
		if err := c.signedIn(); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(found.template, "/repos/{owner}/{repo}/pulls") && !c.takesPulls() {
		return nil, notFound()
	}
	return found.handle(c)
}

// takesPulls is false of a repository without a commit, too.
func (c *call) takesPulls() bool { return !c.st.NoPulls && len(c.repo.Branches) > 0 }

// redirect is what a renamed repository answers, to writes too. Only readers get a page.
func redirect(method, target string) *answer {
	ans := &answer{status: http.StatusMovedPermanently}
	ans.with("Location", target)
	if method == http.MethodGet {
		ans.with("Content-Type", "text/html; charset=utf-8")
		ans.page = "<a href=\"" + target + "\">Moved Permanently</a>.\n\n"
	}
	return ans
}

func (s *Server) refuse(w http.ResponseWriter, no *refusal, admin bool) {
	switch {
	case no.empty:
		w.WriteHeader(no.status)
	case no.plain:
		kind := "text/plain; charset=utf-8"
		if no.html {
			kind = "text/html; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(no.status)
		_, _ = io.WriteString(w, no.message)
	default:
		writeJSON(w, no.status, no.body(s.docs(), admin))
	}
}

// find matches a request, a slash at its end aside. A status means that there is no route: 404 or 405.
func (s *Server) find(r *http.Request) (*route, map[string]string, int) {
	rest, below := strings.CutPrefix(r.URL.EscapedPath(), s.root+apiRoot)
	if !below {
		return nil, nil, http.StatusNotFound
	}
	status := http.StatusNotFound
	segments := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	for i := range s.routes {
		params, fits := match(s.routes[i].template, segments)
		if fits && s.routes[i].method == r.Method {
			return &s.routes[i], params, 0
		}
		if fits {
			status = http.StatusMethodNotAllowed
		}
	}
	return nil, nil, status
}

// match compares escaped segments, so that an escaped slash belongs to a name.
func match(template string, segments []string) (map[string]string, bool) {
	params := map[string]string{}
	wanted := strings.Split(template, "/")
	for i, want := range wanted {
		name, isParam := strings.CutPrefix(strings.TrimSuffix(want, "}"), "{")
		name, rest := strings.CutSuffix(name, "...")
		if i >= len(segments) {
			return nil, false
		}
		have := segments[i]
		if rest {
			have = strings.Join(segments[i:], "/")
		}
		value, err := url.PathUnescape(have)
		switch {
		case err != nil, isParam && value == "", !isParam && value != want:
			return nil, false
		case isParam:
			params[name] = value
		}
		if rest {
			return params, true
		}
	}
	return params, len(wanted) == len(segments)
}
