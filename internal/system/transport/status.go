package transport

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/weborigin"
)

// unsaidWait is the wait when a forge limits our rate without naming a time: GitHub's advice is at least a minute.
const unsaidWait = time.Minute

// StatusFault translates an answer whose status means the same at every forge; nil for all others, which the adapter
// interprets: 2xx, and of 4xx all but those below. message is the forge's message, cleaned and capped by the caller; it
// may be empty.
//
//	401                                provider_disabled
//	403 or 429 for coming too often    rate_limited with RetryAfter, at least a second
//	407                                upstream_error: a proxy
//	3xx to another host                provider_disabled: the address in the configuration is not the forge's
//	other 3xx                          upstream_error: moved
//	408, 504                           timeout
//	other 5xx                          upstream_error; of a 503 with RetryAfter, if the forge says one
func (t *Transport) StatusFault(resp *http.Response, message string) *fault.Error {
	host, status := t.opt.Base.Host, resp.StatusCode
	said := t.said(resp, message)
	switch {
	case status == http.StatusUnauthorized && t.opt.Credential == nil:
		return fault.New(fault.ProviderDisabled, "%s answers nobody without a token (401); set %s%s", host,
			t.opt.Variables.Token, said)
	case status == http.StatusUnauthorized:
		return fault.New(fault.ProviderDisabled,
			"%s was refused by %s (401); check that it is complete and has not expired%s",
			t.opt.Variables.Token, host, said)
	case status == http.StatusTooManyRequests || status == http.StatusForbidden &&
		limited(resp.Header, message, t.opt.Clock.Now()):
		return t.LimitFault(resp, message)
	case status == http.StatusProxyAuthRequired:
		return fault.New(fault.UpstreamError, "the proxy on the way to %s wants to know who we are (407)%s", host, said)
	case status >= 300 && status < 400:
		return t.moved(resp, said)
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		return fault.New(fault.Timeout, "%s took too long (%d)%s", host, status, said)
	case status >= 500:
		f := fault.New(fault.UpstreamError, "%s failed (%d)%s", host, status, said)
		if wait, known := retryAfter(resp.Header, t.opt.Clock.Now()); known && status == http.StatusServiceUnavailable {
			f.RetryAfter = max(wait, time.Second)
		}
		return f
	default:
		return nil
	}
}

// LimitFault returns the rate_limited of an answer that is one whatever its status: GraphQL says it with 200.
// RetryAfter comes from the headers: Retry-After, or the end of the window when nothing of the limit is left, or a
// minute.
func (t *Transport) LimitFault(resp *http.Response, message string) *fault.Error {
	wait, known := limitWait(resp.Header, t.opt.Clock.Now())
	if !known {
		wait = unsaidWait
	}
	wait = max(wait, time.Second)
	f := fault.New(fault.RateLimited, "%s takes no more requests from us for now; try again in %s%s",
		t.opt.Base.Host, wait, t.said(resp, message))
	f.RetryAfter = wait
	return f
}

// limited tells a 403 for coming too often from one for lack of rights. Headers decide; GitHub's secondary limits may
// come without any, and then only the text says it.
func limited(h http.Header, message string, now time.Time) bool {
	if _, known := limitWait(h, now); known {
		return true
	}
	text := strings.ToLower(message)
	return strings.Contains(text, "secondary rate limit") || strings.Contains(text, "rate limit exceeded") ||
		strings.Contains(text, "abuse detection")
}

// moved returns the fault for a redirect that was not followed.
func (t *Transport) moved(resp *http.Response, said string) *fault.Error {
	host := t.opt.Base.Host
	to, err := url.Parse(resp.Header.Get("Location"))
	if err == nil && to.Host != "" && !weborigin.Same(to, t.opt.Base) {
		return fault.New(fault.ProviderDisabled, "%s answers with a redirect to %s (%d), which is not followed; %s%s",
			host, t.origin(to), resp.StatusCode, t.baseAdvice(), said)
	}
	return fault.New(fault.UpstreamError,
		"%s says that what was asked for has moved (%d); use the present name of the repository, or correct %s%s",
		host, resp.StatusCode, t.opt.Variables.Address, said)
}

// said returns the forge's message, to be appended to ours.
func (t *Transport) said(resp *http.Response, message string) string {
	out := ""
	if message = strings.TrimSpace(t.scrub.text(message)); message != "" {
		out = ": " + fault.Said(message)
	}
	if id := t.requestID(resp); id != "" {
		out += " (request id " + id + ")"
	}
	return out
}

// requestID returns the forge's name for the request, in printable characters and at most 64 of them; "" if it has
// none.
func (t *Transport) requestID(resp *http.Response) string {
	id := t.scrub.text(cmp.Or(resp.Header.Get("X-Github-Request-Id"), resp.Header.Get("X-Request-Id")))
	id = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(":._-[]", r):
			return r
		default:
			return -1
		}
	}, id)
	id = t.scrub.text(id) // once more: what was left out may have stood inside the token
	return id[:min(len(id), 64)]
}
