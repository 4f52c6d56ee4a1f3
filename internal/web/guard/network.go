package guard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/weborigin"
)

// Network says how the server is reached.
type Network struct {
	// Loopback says that only this machine can connect, so that a caller without credentials may be let read, if the
	// operator wants it (access.Options.AnonymousRead). It must be false where a proxy is configured: strangers come from
	// loopback then.
	Loopback bool
	// AnyIP accepts every IP address in Host, for a listener on all interfaces. A page that rebinds a name cannot send
	// one.
	AnyIP bool
	// Hosts are the names and addresses, without port, that Host may have beside those of loopback.
	Hosts []string
	// BasePath is the path below which everything is served: "" or "/ops", without a slash at its end.
	BasePath string
	// TrustedProxies are the networks whose forwarded headers are believed. Those of all others are ignored.
	TrustedProxies []netip.Prefix
	// ProxyUserHeader carries the user that a trusted proxy has recognised; "" for none.
	ProxyUserHeader string
	// Own says how a browser that signs in at loopback goes on; the zero value leaves it where it is.
	Own Own
}

// serves reports whether a Host header names this server. It keeps pages of other sites from reaching it by a name of
// theirs that they point at its address (DNS rebinding).
func (n Network) serves(host string) bool {
	name := hostName(host)
	if _, own := sharedHost(host); own || weborigin.Loopback(name) || slices.ContainsFunc(n.Hosts,
		func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	_, err := netip.ParseAddr(name)
	return n.AnyIP && err == nil
}

// hostName returns a Host header without its port, lower case.
func hostName(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// remote returns the address that the connection comes from.
func remote(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

func (n Network) trusts(addr netip.Addr) bool {
	return addr.IsValid() && slices.ContainsFunc(n.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Client returns the address of the caller, as far as trusted proxies tell it: the last one in X-Forwarded-For that is
// none of theirs.
func (n Network) Client(r *http.Request) netip.Addr {
	addr := remote(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !n.trusts(addr) {
			return addr
		}
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return addr
		}
		addr = next.Unmap()
	}
	return addr
}

// local reports whether a request was made on this machine, as far as that can be known: only this machine can connect,
// it asks for loopback, and nothing says that a proxy has passed it on. A proxy that does not identify itself looks
// like a program on this machine, which is why callers without credentials may at most read, and only if the operator
// wants it.
func (n Network) local(r *http.Request) bool {
	return n.Loopback && remote(r).IsLoopback() && weborigin.Loopback(hostName(r.Host)) && !forwarded(r)
}

// forwarded reports whether a proxy has passed the request on, trusted or not. Proxies add one of these headers, as a
// rule; nginx does not by itself, but speaks HTTP/1.0 to us then, as no browser does.
func forwarded(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || strings.HasPrefix(name, "Cf-") {
			return true
		}
	}
	for _, name := range []string{
		"Forwarded", "Via", "X-Real-Ip", "X-Original-Forwarded-For", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip",
		"X-Request-Start",
	} {
		if len(r.Header.Values(name)) > 0 {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}
