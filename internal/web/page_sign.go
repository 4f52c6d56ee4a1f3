package web

import (
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/web/pages"
)

func itoa(n int) string { return strconv.Itoa(n) }

// quality is the weight among the parameters of an entry of Accept (RFC 9110, 12.4.2).
func quality(parameters string) float64 {
	for _, p := range strings.Split(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(value, 64); err == nil && q >= 0 && q <= 1 {
			return q
		}
		return 0
	}
	return 1
}

// maxCode is more than a one-time code has, in bytes.
const maxCode = 100

// signInPage shows the form. next is where to go then, a path below the base. With a one-time code it shows a button that
// sends the code, which a script presses as soon as somebody sees the page: asking for the page alone uses nothing up, so that
// a program which looks at addresses ahead does no harm.
func (s *Server) signInPage(c *call) (answer, error) {
	next, code := safeNext(c.URL.Query().Get("next")), c.URL.Query().Get("code")
	who, err := s.identify(c)
	c.who = who
	if code != "" && len(code) <= maxCode {
		if err == nil && who.Via == access.ViaSession {
			return s.goTo(next), nil
		}
		return s.html("once", pages.Once{Page: s.frame(c, "Sign in", ""), Code: code, Next: next, Script: s.assets.Once.Name})
	}
	view := pages.SignIn{
		Page: s.frame(c, "Sign in", ""), SignInForm: pages.SignInForm{FormBase: s.Network.BasePath, Next: next},
		SignedIn: line(who.Name),
	}
	if _, cookieErr := c.Cookie(cookieName); err != nil && cookieErr == nil {
		view.Note = fault.From(err).Message
	}
	return s.html("signin", view)
}

// signInFirst is where a person goes who asked for a page and has to sign in first; "" for everybody else.
func (s *Server) signInFirst(c *call, p Problem) string {
	reads := c.Method == http.MethodGet || c.Method == http.MethodHead
	refresh := c.Header.Get("HX-Request") != "" // of a part of a page, where another page would be of no use
	if !c.page || !reads || refresh || p.Code != fault.Unauthenticated {
		return ""
	}
	next := c.URL.EscapedPath()
	if c.URL.RawQuery != "" {
		next += "?" + c.URL.RawQuery
	}
	return s.Network.BasePath + signInPath + "?next=" + url.QueryEscape(safeNext(next))
}

// maxNext bounds the address to go on to after signing in, in bytes.
const maxNext = 1000

// safeNext returns the address of one of our pages, without the base path, as it was given; "/" for everything else,
// above all for what a browser would take for another site or for a path outside the base.
func safeNext(next string) string {
	odd := func(r rune) bool { return r == '\\' || unicode.IsControl(r) || unicode.IsSpace(r) }
	if len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.ContainsFunc(next, odd) {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Fragment != "" ||
		path.Clean(u.Path) != u.Path || strings.ContainsFunc(u.Path, odd) || u.Path == signInPath {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}

// readForm reads the fields of a form.
func readForm(c *call) (url.Values, error) {
	body, err := readBody(c, "application/x-www-form-urlencoded")
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidArgument, "the form is malformed")
	}
	return form, nil
}
