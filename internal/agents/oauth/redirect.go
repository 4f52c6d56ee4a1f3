package oauth

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/weborigin"
)

// Bounds of redirect addresses.
const (
	maxRedirects = 10
	maxRedirect  = 500 // bytes
)

// appSchemes returns the schemes of programs on the person's machine that have no dot, contrary to RFC 8252: those of
// MCP clients that register with them.
func appSchemes() []string { return []string{"cursor", "vscode", "vscode-insiders"} }

// parseRedirect reads an address that browsers may be sent back to: by https; by http to this machine; or by the scheme
// of a program on it. ok is false for all others, above all for those that a browser could run.
func parseRedirect(text string) (u *url.URL, ok bool) {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\\\"'<>`{}|^,;", r) }
	if len(text) > maxRedirect || strings.ContainsFunc(text, odd) || strings.Contains(text, "#") {
		return nil, false
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Scheme == "" || strings.ContainsFunc(u.Host, unicode.IsUpper) {
		return nil, false
	}
	switch u.Scheme {
	case "https":
		return u, u.Opaque == "" && isHost(text, u)
	case "http":
		return u, u.Opaque == "" && isHost(text, u) && weborigin.Loopback(u.Hostname())
	}
	return u, strings.Contains(u.Scheme, ".") || slices.Contains(appSchemes(), u.Scheme)
}

// isHost reports whether an address spells its host as names of hosts are resolved: ASCII letters, digits and hyphens,
// or an IP address. A person reads it on the page of consent, and the page's policy takes it over as it is: an escaped
// letter could look like another one, and a * stands for every host there.
func isHost(text string, u *url.URL) bool {
	_, rest, _ := strings.Cut(text, "://")
	if !strings.HasPrefix(rest, u.Host) { // it was escaped
		return false
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return !strings.Contains(u.Host, "%")
	}
	return len(u.Hostname()) <= 253 &&
		regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(u.Hostname())
}

// matches reports whether a browser may be sent to an address by a program that has registered another one: they are
// the same to the letter, or differ in the port on this machine alone, which a program does not know ahead (RFC 8252,
// 7.3).
func matches(registered, given string) bool {
	if registered == given {
		_, ok := parseRedirect(given)
		return ok
	}
	r, ok := parseRedirect(registered)
	g, too := parseRedirect(given)
	if !ok || !too || r.Scheme != "http" || g.Scheme != "http" || r.Hostname() != g.Hostname() {
		return false
	}
	return withoutPort(r) == withoutPort(g)
}

// withoutPort returns a loopback address without its port.
func withoutPort(u *url.URL) string {
	v := *u
	v.Host = u.Hostname()
	return v.String()
}

// Place says where an address leads, for a person.
func Place(redirect string) string {
	u, ok := parseRedirect(redirect)
	switch {
	case !ok:
		return "an unknown place"
	case u.Scheme == "http":
		return "a program on your computer (" + u.Host + ")"
	case u.Scheme == "https":
		return u.Host
	}
	return "the program for " + u.Scheme + ": on your computer"
}

// IsFar reports whether an address leads to another machine. Anybody may have registered it, so that a browser goes
// there by the will of its person alone, and not for an error (RFC 9700, 4.11.2).
func IsFar(redirect string) bool {
	u, ok := parseRedirect(redirect)
	return !ok || u.Scheme == "https"
}

// FormAction returns the source by which a page may send its form on to an address (Content-Security-Policy,
// form-action).
func FormAction(redirect string) string {
	u, ok := parseRedirect(redirect)
	switch {
	case !ok:
		return ""
	case u.Scheme == "http" || u.Scheme == "https":
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

// answerAt returns an address with what is answered there.
func answerAt(redirect string, answer url.Values) string {
	separator := "?"
	if strings.Contains(redirect, "?") {
		separator = "&"
	}
	return redirect + separator + answer.Encode()
}
