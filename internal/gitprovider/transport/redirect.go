package transport

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/claudeops/claudeops/internal/fault"
)

// maxRedirects bounds how often one request is passed on.
const maxRedirects = 5

// checkRedirect implements http.Client's field of that name. A read follows its forge from one address to another as
// long as it stays at the origin. A write is not made again at an address that nobody asked it to go to: the caller
// gets the answer 3xx itself.
func (t *Transport) checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if !isSafe(first) || next.Method != cmp.Or(first.Method, http.MethodGet) {
		return http.ErrUseLastResponse
	}
	if !sameOrigin(next.URL, first.URL) {
		return fault.New(fault.ProviderDisabled, "%s answers with a redirect to %s, which is not followed; %s",
			t.opt.Base.Host, t.origin(next.URL), t.baseAdvice())
	}
	if len(via) > maxRedirects {
		return fault.New(fault.UpstreamError, "%s redirects more than %d times in a row; check %s",
			t.opt.Base.Host, maxRedirects, t.opt.BaseName)
	}
	return nil
}

// origin is an address without its path, for messages.
func (t *Transport) origin(u *url.URL) string { return t.scrub.text(u.Scheme + "://" + u.Host) }

func (t *Transport) baseAdvice() string {
	return "set " + t.opt.BaseName + " to the address at which the forge answers itself"
}
