package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Options configures a Transport. Name and Base are required.
type Options struct {
	Name      string // the provider's name, for messages: "github"
	Variables Variables

	// Base is the API's root: https, or http to a loopback address, or http to anywhere if Network.AllowPlainHTTP. A path
	// is kept; user information, query and fragment are refused.
	Base *url.URL

	// Credential gives the tokens; nil: Token is the one for every request, and without it requests are anonymous.
	Credential Credential
	Token      string
	Scheme     string // of the Authorization header: "Bearer" (the default) or "token"

	Network   Network
	UserAgent string // empty: the library's
	Limits    Limits
	Clock     Clock
	Log       *slog.Logger // one line a request, at debug level; nil: none

	// Observe is called with the outcome of each request and the time that the caller waited for it, retries and the wait
	// for other writers included; nil: not called. It must be quick, and safe for concurrent use.
	Observe func(outcome string, took time.Duration)
}

// Variables names what messages ask the operator to check: names of variables, or of what replaces them.
type Variables struct {
	Token   string // "GITHUB_TOKEN"
	Address string // of Base: "GITHUB_API_URL"
}

// Network says how the forge is reached.
type Network struct {
	RootCAs        *x509.CertPool                        // nil: the system's
	Proxy          func(*http.Request) (*url.URL, error) // nil: no proxy
	AllowPlainHTTP bool                                  // to other machines
}

// Clock is the time, which tests replace. Zero fields take the defaults named.
type Clock struct {
	Now    func() time.Time                           // time.Now
	Sleep  func(ctx context.Context, d time.Duration) // ends early with ctx; a timer
	Jitter func(ceiling time.Duration) time.Duration  // between 0 and the ceiling; uniformly random

	// Limit ends a try after d; context.WithTimeout.
	Limit func(try context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// WithDefaults returns the clock with what it lacks.
func (c Clock) WithDefaults() Clock {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = Sleep
	}
	if c.Jitter == nil {
		c.Jitter = jitter
	}
	if c.Limit == nil {
		c.Limit = context.WithTimeout
	}
	return c
}

// Limits bound what one request may cost. Zero fields take the defaults named.
type Limits struct {
	Dial           time.Duration // to connect; 10 s
	TLSHandshake   time.Duration // 10 s
	ResponseHeader time.Duration // of a read: from the request's last byte to the answer's header; 20 s
	Whole          time.Duration // one try of a read, from connecting to the last byte of the body; 30 s
	// Write is one try of a write. A busy small server (Gitea on a Raspberry Pi) takes a minute for one, and to have
	// waited is much better than not to know what it did: 90 s.
	Write         time.Duration
	MaxBody       int64         // bytes of an answer after decompression; 32 MiB
	Retries       int           // tries after the first; 2; negative: none
	RetryWait     time.Duration // ceiling of the first wait; it doubles each time, and jitter takes a part; 250 ms
	MaxRetryAfter time.Duration // the longest wait that a server may ask of us; beyond it the answer is final; 10 s
	MaxConcurrent int           // requests at once; 8
	// WritePause is kept between the end of a write and the next write. GitHub recommends a second for clients that
	// write in bulk; one pull request is three writes, so the default is none.
	WritePause time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Dial:           cmp.Or(l.Dial, 10*time.Second),
		TLSHandshake:   cmp.Or(l.TLSHandshake, 10*time.Second),
		ResponseHeader: cmp.Or(l.ResponseHeader, 20*time.Second),
		Whole:          cmp.Or(l.Whole, 30*time.Second),
		Write:          cmp.Or(l.Write, 90*time.Second),
		MaxBody:        cmp.Or(l.MaxBody, 32<<20),
		Retries:        max(0, cmp.Or(l.Retries, 2)),
		RetryWait:      cmp.Or(l.RetryWait, 250*time.Millisecond),
		MaxRetryAfter:  cmp.Or(l.MaxRetryAfter, 10*time.Second),
		MaxConcurrent:  cmp.Or(l.MaxConcurrent, 8),
		WritePause:     l.WritePause,
	}
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	o.Variables.Token = cmp.Or(o.Variables.Token, "the token")
	o.Variables.Address = cmp.Or(o.Variables.Address, "the base URL")
	o.Scheme = cmp.Or(o.Scheme, "Bearer")
	if o.Credential == nil && o.Token != "" {
		o.Credential = fixed(o.Token)
	}
	o.Clock = o.Clock.WithDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(string, time.Duration) {}
	}
	return o
}

// check says what is wrong with the options, or nil.
func (o Options) check() error {
	base := o.Base
	switch {
	case base == nil || base.Host == "" || base.Opaque != "" || base.Scheme != "http" && base.Scheme != "https":
		return fault.New(fault.ProviderDisabled, "%s is not an address like https://host/path; correct it",
			o.Variables.Address)
	case base.User != nil:
		return fault.New(fault.ProviderDisabled,
			"%s holds a user name or password; leave them out and put the token into %s", o.Variables.Address, o.Variables.Token)
	case base.RawQuery != "" || base.Fragment != "":
		return fault.New(fault.ProviderDisabled, "%s has a query or a fragment; leave them out", o.Variables.Address)
	case !o.Network.AllowPlainHTTP && !IsConfidential(base):
		return fault.New(fault.ProviderDisabled,
			"%s is plain http, which would show the token to the network; use https, or set CLAUDEOPS_FORGE_PLAIN_HTTP=true "+
				"where you trust all of that network", o.Variables.Address)
	case badToken(o.Token):
		return malformedToken(o.Variables.Token)
	case o.Scheme != "Bearer" && o.Scheme != "token":
		return fault.New(fault.Internal, "unknown authorization scheme for %s", o.Name)
	}
	return nil
}

// Sleep waits for d or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func jitter(ceiling time.Duration) time.Duration {
	return rand.N(ceiling + 1) // #nosec G404 -- spreads retries, guards nothing
}

// Pool keeps connections for Clients, which may share it: TLS 1.2 or later, verified, and a bound for each phase (10 s
// to connect, 10 s for TLS, 20 s for the answer's headers, 64 KiB of them). It is safe for concurrent use.
type Pool struct {
	proxy  func(*http.Request) (*url.URL, error) // nil for none
	any    *http.Transport
	public *http.Transport // connects to addresses of the internet alone, and to no proxy
}

// NewPool makes a Pool. proxy is asked for each request; nil means direct connections.
func NewPool(proxy func(*http.Request) (*url.URL, error)) *Pool {
	limits := Limits{}.withDefaults()
	p := &Pool{proxy: proxy}
	p.any = connections(Network{Proxy: proxy}, limits, (&net.Dialer{Timeout: limits.Dial}).DialContext)
	p.public = connections(Network{}, limits, (&net.Dialer{Timeout: limits.Dial, Control: refusePrivate}).DialContext)
	for _, t := range []*http.Transport{p.any, p.public} {
		t.ResponseHeaderTimeout, t.MaxResponseHeaderBytes, t.MaxIdleConnsPerHost = 20*time.Second, 64<<10, 1
	}
	return p
}

// RoundTrip implements http.RoundTripper. A request of a Client to a host that is not private has connections of its
// own, so that it never goes by one that was made to a private address for somebody else. A connection to a proxy is
// none to the host: what the proxy reaches is for the proxy to say.
func (p *Pool) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Value(publicKey{}) == nil {
		return p.any.RoundTrip(req)
	}
	if p.proxy != nil {
		// the error is found again there, which closes the request's body
		if via, err := p.proxy(req); err != nil || via != nil {
			return p.any.RoundTrip(req)
		}
	}
	return p.public.RoundTrip(req)
}

// CloseIdleConnections closes the connections that are not in use.
func (p *Pool) CloseIdleConnections() {
	p.any.CloseIdleConnections()
	p.public.CloseIdleConnections()
}

// Dial connects to a place that the operator named and that does not speak HTTP, such as a syslog. It takes 10 s at
// most.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: Limits{}.withDefaults().Dial}).DialContext(ctx, network, address)
}

// connections returns the part that Transport and Pool share.
func connections(n Network, l Limits, dial func(ctx context.Context, network, address string) (net.Conn,
	error)) *http.Transport {
	return &http.Transport{
		Proxy: n.Proxy, DialContext: dial,
		TLSClientConfig:     &tls.Config{RootCAs: n.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: l.TLSHandshake,
		IdleConnTimeout:     idleFor,
		ForceAttemptHTTP2:   true, // own dialer and TLS settings switch it off otherwise
	}
}

// publicKey is the key of the context of requests that go to no private address.
type publicKey struct{}

// refusePrivate implements net.Dialer's Control. Only when a connection is made it is known which address a name has.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err != nil || !IsPublic(at.Addr()) {
		return &RefusedError{Why: PrivateAddress}
	}
	return nil
}

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
	if !SameOrigin(next.URL, first.URL) {
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
func (t *Transport) origin(u *url.URL) string { return t.scrub.scrub(u.Scheme + "://" + u.Host) }

func (t *Transport) baseAdvice() string {
	return "set " + t.opt.Variables.Address + " to the address at which the forge answers itself"
}
