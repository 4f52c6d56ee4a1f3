package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Failure translates an error without an answer of the forge: from an http.Client with t, or from a library above one.
// timeout for a context that ended and for our own limits; upstream_error for everything else. A *fault.Error inside
// err is returned as it is. The cause, for the logs, is scrubbed and keeps only what errors.Is finds in it.
// Failure(nil) is nil; mind the type when it becomes an error.
func (t *Transport) Failure(err error) *fault.Error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return t.contextFault(err)
	}
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &shape) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fault.Wrap(t.scrub.err(err), fault.UpstreamError,
			"%s answered something else than its API promises; check %s", t.opt.Base.Host, t.opt.Variables.Address)
	}
	return t.classify(context.Background(), deadline{ctx: context.Background()}, err).fault
}

// contextFault returns the fault for a context that is done, by its cause.
func (t *Transport) contextFault(cause error) *fault.Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return fault.Wrap(t.scrub.err(cause), fault.Timeout, "the time for the call to %s was over before it had finished",
			t.opt.Name)
	}
	return fault.Wrap(t.scrub.err(cause), fault.Timeout, "the call to %s was cancelled before it had finished", t.opt.Name)
}

// classify says what a failed try means. parent is the caller's context, limits the same with our limits.
func (t *Transport) classify(parent context.Context, limits deadline, err error) *tryFailure {
	if parent.Err() != nil {
		return &tryFailure{fault: t.contextFault(context.Cause(parent))}
	}
	host := t.opt.Base.Host
	cause := t.scrub.err(err)
	as := func(code fault.Code, format string, args ...any) *fault.Error {
		return fault.Wrap(cause, code, format, append([]any{host}, args...)...)
	}
	var timeout net.Error
	var unreached *dialError
	var refused *proxyError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &unreached) && !unreached.Timeout():
		return &tryFailure{fault: as(fault.UpstreamError, "%s cannot be reached: %s; check %s and the network",
			unreached.describeCause(), t.opt.Variables.Address), unsent: true}
	case errors.Is(context.Cause(limits.ctx), errNoHeader):
		return &tryFailure{fault: as(fault.Timeout, "%s did not answer in time")}
	case limits.ctx.Err() != nil:
		return &tryFailure{fault: as(fault.Timeout, "%s did not finish its answer within %s", limits.whole)}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &tryFailure{fault: as(fault.Timeout, "%s did not answer in time")}
	case errors.As(err, &refused):
		return &tryFailure{fault: as(fault.UpstreamError, "the proxy on the way to %s answered %d; check the proxy settings",
			refused.status), unsent: refused.status >= http.StatusInternalServerError}
	case errors.As(err, &noTLS):
		return &tryFailure{fault: as(fault.UpstreamError, "%s does not speak https; check %s", t.opt.Variables.Address)}
	case untrusted(err):
		return &tryFailure{fault: as(fault.UpstreamError,
			"the certificate of %s is not valid or not trusted; if its authority is your own, trust it in the configuration")}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return &tryFailure{fault: as(fault.UpstreamError, "%s broke the connection before its answer was complete"),
			broken: true}
	default:
		return &tryFailure{fault: as(fault.UpstreamError, "the exchange with %s failed; the log has the details"), broken: true}
	}
}

func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid)
}

// dialError marks what happened before there was a connection: the request was not sent.
type dialError struct{ cause error }

// Error implements error.
func (e *dialError) Error() string { return e.cause.Error() }

// Unwrap gives what the dialer said.
func (e *dialError) Unwrap() error { return e.cause }

// Timeout says whether time was what ran out.
func (e *dialError) Timeout() bool {
	var timeout net.Error
	return errors.As(e.cause, &timeout) && timeout.Timeout()
}

// describeCause describes the error for a person.
func (e *dialError) describeCause() string {
	var name *net.DNSError
	switch {
	case errors.As(e.cause, &name):
		return "its name cannot be resolved"
	case errors.Is(e.cause, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(e.cause, syscall.ENETUNREACH), errors.Is(e.cause, syscall.EHOSTUNREACH):
		return "there is no route to it"
	default:
		return "no connection could be made"
	}
}

// proxyError marks a proxy that did not make the tunnel it was asked for: the request was not sent.
type proxyError struct{ status int }

// Error implements error.
func (e *proxyError) Error() string {
	return "proxy answered " + strconv.Itoa(e.status) + " to CONNECT"
}

// checkProxy implements http.Transport's OnProxyConnectResponse, for an error that has a type.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &proxyError{resp.StatusCode}
	}
	return nil
}

// unsaidWait is the wait when a forge limits our rate without naming a time: GitHub's advice is at least a minute.
const unsaidWait = time.Minute

// StatusFault translates an answer whose status means the same at every forge; nil for all others, which the adapter
// interprets: 2xx, and of 4xx all but those below. message is the forge's message, cleaned and capped by the caller; it
// may be empty.
//
//	401                                provider_disabled
//	403 or 429 for coming too often    rate_limited with RetryAfter, at least a second
//	407                                upstream_error: a proxy
//	3xx to another host, or to a page  provider_disabled: the address in the configuration is not the forge's
//	other 3xx                          upstream_error: moved
//	408, 504                           timeout
//	other 5xx                          upstream_error; of a 503 with RetryAfter, if the forge says one
func (t *Transport) StatusFault(resp *http.Response, message string) *fault.Error {
	host, status := t.opt.Base.Host, resp.StatusCode
	said := t.forgeMessage(resp, message)
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
		t.opt.Base.Host, wait, t.forgeMessage(resp, message))
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

// maxShownPath bounds, in bytes, what a message shows of the path of a redirect.
const maxShownPath = 100

// moved returns the fault for a redirect that was not followed.
func (t *Transport) moved(resp *http.Response, said string) *fault.Error {
	host := t.opt.Base.Host
	to, err := url.Parse(resp.Header.Get("Location"))
	if err == nil && to.Host != "" && !SameOrigin(to, t.opt.Base) {
		return fault.New(fault.ProviderDisabled, "%s answers with a redirect to %s (%d), which is not followed; %s%s",
			host, t.origin(to), resp.StatusCode, t.baseAdvice(), said)
	}
	// What was renamed stays below the same path; a page stands elsewhere.
	api := "/" + strings.Trim(t.opt.Base.Path, "/") + "/"
	if err == nil && to.Path != "" && api != "//" && !strings.HasPrefix(to.Path, api) {
		return fault.New(fault.ProviderDisabled, "%s redirects to a page, %s (%d), as a sign-in before the forge does; let "+
			"requests for %s through there, or %s%s", host,
			t.scrub.scrub(strconv.QuoteToASCII(to.Path[:min(len(to.Path), maxShownPath)])), resp.StatusCode, api,
			t.baseAdvice(), said)
	}
	return fault.New(fault.UpstreamError,
		"%s says that what was asked for has moved (%d); use the present name of the repository, or correct %s%s",
		host, resp.StatusCode, t.opt.Variables.Address, said)
}

// forgeMessage returns the forge's message, to be appended to ours.
func (t *Transport) forgeMessage(resp *http.Response, message string) string {
	out := ""
	if message = strings.TrimSpace(t.scrub.scrub(message)); message != "" {
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
	id := t.scrub.scrub(cmp.Or(resp.Header.Get("X-Github-Request-Id"), resp.Header.Get("X-Request-Id")))
	id = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(":._-[]", r):
			return r
		default:
			return -1
		}
	}, id)
	id = t.scrub.scrub(id) // once more: what was left out may have stood inside the token
	return id[:min(len(id), 64)]
}
