package web

import (
	"net/http"
	"strings"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/web/pages"
)

const (
	signInPath = "/sign-in"
	pullPath   = "/pulls/{provider}/{owner}/{repo}/{number}"
)

// pageRoutes are what people see. They are behind the same guard as everything else, and no part of the API.
func (s *Server) pageRoutes() []route {
	looks := func(pattern string, handle func(*call) (answer, error)) route {
		return route{method: "GET", pattern: pattern, scope: access.Read, page: true, handle: handle}
	}
	live := func(pattern string, handle func(*call) (answer, error)) route {
		return looks(pattern, s.following(handle))
	}
	return []route{
		live("/{$}", s.overviewPage), live("/proposals", s.proposalsPage), live("/proposals/{id}", s.proposalPage),
		live("/pulls", s.pullsPage), live(pullPath, s.pullPage), looks("/policy", s.policyPage), live("/audit", s.auditPage),
		looks("/audit.jsonl", s.auditLines), looks("/doctor", s.doctorPage), looks(eventsPath, s.events),
		{
			method: "POST", pattern: "/proposals/{id}/promote", scope: access.Review, page: true, proposes: true,
			handle: s.promoteByForm,
		},
		{method: "POST", pattern: pullPath + "/review", scope: access.Review, page: true, reviews: true, handle: s.reviewByForm},
		live("/sessions", s.sessionsPage), live("/sessions/{id}", s.sessionPage),
		{method: "POST", pattern: "/sessions", scope: access.Operate, page: true, operates: people.StartSession, handle: s.startByForm},
		{method: "POST", pattern: "/sessions/{id}/stop", scope: access.Operate, page: true, operates: people.StopSession, handle: s.stopByForm},
		{method: "GET", pattern: signInPath, page: true, handle: s.signInPage},
		{method: "GET", pattern: "/static/{name}", page: true, handle: s.asset},
	}
}

// following makes the page of a handler one that follows what happens. It notes where the record is before the handler
// reads it, so that the page is told of everything that it may lack. If that cannot be read, the page does not follow.
func (s *Server) following(handle func(*call) (answer, error)) func(*call) (answer, error) {
	return func(c *call) (answer, error) {
		if at, err := s.hub.read(c.Context()); err == nil {
			c.at = at.String()
		} else {
			s.hub.failed(err)
		}
		return handle(c)
	}
}

// html answers with a page.
func (s *Server) html(name string, view any) (answer, error) {
	body, err := s.pages.Render(name, view)
	return answer{bytes: body, contentType: "text/html; charset=utf-8", volatile: true}, err
}

// frame is what every page has. current is the path of its entry in the navigation.
func (s *Server) frame(c *call, title, current string) pages.Page {
	version := s.Version
	if c.who.Name == "" { // strangers need not know what runs
		version = ""
	}
	return pages.Page{
		Base: s.Network.BasePath, Title: title, Current: current, Who: line(c.who.Name), CanSignOut: c.who.Via == access.ViaSession,
		CanSignIn: c.who.Via == access.ViaAnonymous,
		Style:     s.assets.Style.Name, Icon: s.assets.Icon.Name, Version: version, Position: c.at,
		Scripts: []string{s.assets.Htmx.Name, s.assets.Live.Name},
	}
}

// asset serves a file by its exact name, which changes with its content.
func (s *Server) asset(c *call) (answer, error) {
	a, found := s.assets.Find(c.PathValue("name"))
	if !found {
		return answer{}, s.nothingHere()
	}
	return answer{bytes: a.Content, contentType: a.ContentType, header: http.Header{
		"Cache-Control": {"public, max-age=31536000, immutable"},
	}}, nil
}

// text is what others wrote, as a page shows it: without our tokens, without what nobody can see, and bounded.
func (s *Server) text(text string, runes int) string {
	out, _ := content.Clean(s.Redact(text), runes)
	return out
}

// words is a line of such text.
func (s *Server) words(text string) string { return s.text(text, maxLine) }

// violationsOf shows the first broken rules, and counts the others.
func (s *Server) violationsOf(violations []fault.Violation) (out []pages.Violation, more int) {
	for i, v := range violations {
		if i == pages.MaxItems {
			return out, len(violations) - i
		}
		out = append(out, pages.Violation{
			Code: string(v.Code), Path: s.words(v.Path), Rule: s.words(v.Rule), Message: s.text(v.Message, maxMessage),
			Suggestion: s.text(v.Suggestion, maxMessage),
		})
	}
	return out, 0
}

// problemPage renders an error for a person. recorded says that the request id is that of an attempt.
func (s *Server) problemPage(c *call, p Problem, recorded bool) []byte {
	view := pages.Problem{
		Page: s.frame(c, p.Title, ""), Status: p.Status, Code: string(p.Code), Detail: s.text(p.Detail, maxMessage),
		RequestID: p.RequestID, RetryAfter: p.RetryAfterSeconds,
	}
	view.Position = "" // an error stays as it is
	view.Violations, view.More = s.violationsOf(p.Violations)
	if p.ExistingPR != nil {
		view.Existing = s.words("#" + itoa(p.ExistingPR.Number) + " " + p.ExistingPR.Title)
		view.ExistingAt = pages.WebAddress(p.ExistingPR.URL)
	}
	if recorded && strings.HasPrefix(c.Pattern, "POST /proposals/") {
		view.Attempt = "/proposals/" + p.RequestID
	}
	if p.Code == fault.Unauthenticated {
		view.SignIn = &pages.SignInForm{FormBase: s.Network.BasePath, Next: "/"}
	}
	body, err := s.pages.Render("problem", view)
	if err != nil {
		s.Log.Error("error page not rendered", "request_id", c.id, "error", err)
		return []byte("<!doctype html><title>Error</title><p>Something went wrong; the log has the details.")
	}
	return body
}

// prefersHTML reports whether the client would rather have a page than JSON: it names text/html and values it no less
// than any form of JSON. Programs that accept anything get JSON.
func prefersHTML(r *http.Request) bool {
	page, data := -1.0, -1.0
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, parameters, _ := strings.Cut(part, ";")
		q := quality(parameters)
		switch kind = strings.ToLower(strings.TrimSpace(kind)); {
		case kind == "text/html":
			page = max(page, q)
		case strings.HasSuffix(kind, "json"):
			data = max(data, q)
		}
	}
	return page > 0 && page >= data
}
