package transport

import (
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
	"syscall"

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
		return t.ended(err)
	}
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &shape) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fault.Wrap(t.scrub.err(err), fault.UpstreamError,
			"%s answered something else than its API promises; check %s", t.opt.Base.Host, t.opt.Variables.Address)
	}
	return t.classify(context.Background(), deadline{ctx: context.Background()}, err).fault
}

// ended returns the fault for a context that is done, by its cause.
func (t *Transport) ended(cause error) *fault.Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return fault.Wrap(t.scrub.err(cause), fault.Timeout, "the time for the call to %s was over before it had finished",
			t.opt.Name)
	}
	return fault.Wrap(t.scrub.err(cause), fault.Timeout, "the call to %s was cancelled before it had finished", t.opt.Name)
}

// classify says what a failed try means. parent is the caller's context, limits the same with our limits.
func (t *Transport) classify(parent context.Context, limits deadline, err error) *failure {
	if parent.Err() != nil {
		return &failure{fault: t.ended(context.Cause(parent))}
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
		return &failure{fault: as(fault.UpstreamError, "%s cannot be reached: %s; check %s and the network",
			unreached.reason(), t.opt.Variables.Address), unsent: true}
	case errors.Is(context.Cause(limits.ctx), errNoHeader):
		return &failure{fault: as(fault.Timeout, "%s did not answer in time")}
	case limits.ctx.Err() != nil:
		return &failure{fault: as(fault.Timeout, "%s did not finish its answer within %s", limits.whole)}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &failure{fault: as(fault.Timeout, "%s did not answer in time")}
	case errors.As(err, &refused):
		return &failure{fault: as(fault.UpstreamError, "the proxy on the way to %s answered %d; check the proxy settings",
			refused.status), unsent: refused.status >= http.StatusInternalServerError}
	case errors.As(err, &noTLS):
		return &failure{fault: as(fault.UpstreamError, "%s does not speak https; check %s", t.opt.Variables.Address)}
	case untrusted(err):
		return &failure{fault: as(fault.UpstreamError,
			"the certificate of %s is not valid or not trusted; if its authority is your own, trust it in the configuration")}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return &failure{fault: as(fault.UpstreamError, "%s broke the connection before its answer was complete"),
			broken: true}
	default:
		return &failure{fault: as(fault.UpstreamError, "the exchange with %s failed; the log has the details"), broken: true}
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

// reason describes the error for a person.
func (e *dialError) reason() string {
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
