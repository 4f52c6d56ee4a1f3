package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/base/weborigin"
)

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
	if at, err := netip.ParseAddrPort(address); err != nil || !weborigin.Public(at.Addr()) {
		return &RefusedError{Why: PrivateAddress}
	}
	return nil
}
