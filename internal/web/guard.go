package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
)

// secure sets the headers that every answer has. Scripts and styles come from this server as files or not at all.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Under no-referrer, browsers send the forms of our own pages with the origin null, and over plain HTTP nothing else tells
	// them from those of other sites.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// guard refuses what no route may see: requests for another host, and unsafe ones from another site.
func (s *Server) guard(r *http.Request) error {
	if !s.Network.serves(r.Host) {
		return fault.New(fault.Forbidden, "this server does not answer for the host that was asked for; "+
			"the operator may list it in CLAUDEOPS_HOSTS")
	}
	return s.checkOrigin(r)
}

// serves reports whether a Host header names this server. It keeps pages of other sites from reaching it by a name of
// theirs that they point at its address (DNS rebinding).
func (n Network) serves(host string) bool {
	name := hostName(host)
	if isLoopback(name) || slices.ContainsFunc(n.Hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	_, err := netip.ParseAddr(name)
	return n.AnyIP && err == nil
}

// hostName is a Host header without its port, lower case.
func hostName(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

func isLoopback(name string) bool {
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && addr.IsLoopback()
}

// remote is the address that the connection comes from.
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

// client is the address of the caller, as far as trusted proxies tell it: the last one in X-Forwarded-For that is none of
// theirs.
func (n Network) client(r *http.Request) netip.Addr {
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

// local reports whether a request was made on this machine, as far as that can be known: only this machine can connect, it asks
// for loopback, and nothing says that a proxy has passed it on. A proxy that says nothing of itself cannot be told from a
// program on this machine, which is why callers who show nothing may at most read, and only if the operator wants it.
func (n Network) local(r *http.Request) bool {
	return n.Loopback && remote(r).IsLoopback() && isLoopback(hostName(r.Host)) && !forwarded(r)
}

// forwarded reports whether a proxy has passed the request on, trusted or not. Proxies add one of these headers, as a rule;
// nginx does not by itself, but speaks HTTP/1.0 to us then, as no browser does.
func forwarded(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || strings.HasPrefix(name, "Cf-") {
			return true
		}
	}
	for _, name := range []string{
		"Forwarded", "Via", "X-Real-Ip", "X-Original-Forwarded-For", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "X-Request-Start",
	} {
		if len(r.Header.Values(name)) > 0 {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}
