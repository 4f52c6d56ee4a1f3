package transport

import (
	"net/url"
	"strings"
)

// URL joins segments to the path of base, each escaped so that it stays one segment: a slash in it becomes %2F, and "."
// and ".." become %2E and %2E%2E, which no client resolves. Any path that base has is kept; its query is not. Nothing
// is refused: whether a name is fit to be asked for is for the caller to know. An empty segment stays empty, so a last
// one ends the path with a slash.
func URL(base *url.URL, segments ...string) *url.URL {
	escaped := strings.TrimSuffix(base.EscapedPath(), "/")
	plain := strings.TrimSuffix(base.Path, "/")
	for _, s := range segments {
		plain += "/" + s
		switch s {
		case ".", "..":
			escaped += "/" + strings.ReplaceAll(s, ".", "%2E")
		default:
			escaped += "/" + url.PathEscape(s)
		}
	}
	// With RawPath set to an encoding of Path, url.URL uses it as it is.
	return &url.URL{Scheme: base.Scheme, Host: base.Host, Path: plain, RawPath: escaped}
}

// sameOrigin says whether two addresses have scheme, host and port in common.
func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	default:
		return "80"
	}
}
