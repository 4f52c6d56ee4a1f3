package transport

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/weborigin"
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

// maxRedirects bounds how often one request is passed on.
const maxRedirects = 5

// checkRedirect implements http.Client's field of that name. A read follows its forge from one address to another as
// long as it stays at the origin. A write is not repeated at an address that its caller did not name: the caller gets
// the answer 3xx itself.
func (t *Transport) checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if !isSafe(first) || next.Method != cmp.Or(first.Method, http.MethodGet) {
		return http.ErrUseLastResponse
	}
	if !weborigin.Same(next.URL, first.URL) {
		return fault.New(fault.ProviderDisabled, "%s answers with a redirect to %s, which is not followed; %s",
			t.opt.Base.Host, t.origin(next.URL), t.baseAdvice())
	}
	if len(via) > maxRedirects {
		return fault.New(fault.UpstreamError, "%s redirects more than %d times in a row; check %s",
			t.opt.Base.Host, maxRedirects, t.opt.Variables.Address)
	}
	return nil
}

// origin returns an address without its path, for messages.
func (t *Transport) origin(u *url.URL) string { return t.scrub.text(u.Scheme + "://" + u.Host) }

func (t *Transport) baseAdvice() string {
	return "set " + t.opt.Variables.Address + " to the address at which the forge answers itself"
}
