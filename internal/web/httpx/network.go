package httpx

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
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
	if _, own := sharedHost(host); own || transport.IsLoopback(name) || slices.ContainsFunc(n.Hosts,
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
	return n.Loopback && remote(r).IsLoopback() && transport.IsLoopback(hostName(r.Host)) && !forwarded(r)
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

// checkOrigin refuses a request that would change something and comes from a page of another site. Browsers that say
// Sec-Fetch-Site are believed; of others, Origin must be ours: scheme, name and port. The library compares no schemes,
// so that a page of https://host could act at http://host.
func (g *Guard) checkOrigin(r *http.Request) error {
	if err := g.origins.Check(r); err != nil {
		return fault.Wrap(err, fault.Forbidden, "the request comes from another site")
	}
	origins := r.Header.Values("Origin")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if reads || len(origins) == 0 || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil
	}
	origin, err := url.Parse(origins[0])
	if err != nil || len(origins) > 1 || origin.Host != r.Host || origin.Scheme != g.scheme(r) {
		return fault.New(fault.Forbidden,
			"the request comes from another site: its Origin is not %s://%s, which it asks for; if a proxy "+
				"speaks TLS to the browser, list it in CLAUDEOPS_TRUSTED_PROXIES and have it send X-Forwarded-Proto", g.scheme(r),
			Quote(r.Host))
	}
	return nil
}

// SameOrigin refuses a request, whatever its method, that says it comes from a page of another site.
func (g *Guard) SameOrigin(r *http.Request) error {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	if len(origins) > 1 || origins[0] != g.scheme(r)+"://"+r.Host {
		return fault.New(fault.Forbidden, "the request comes from another site: its Origin is not %s://%s, which it asks for",
			g.scheme(r), Quote(r.Host))
	}
	return nil
}

// Address returns the address of this server for programs, with the base path: the host of the request, and for a
// browser's own name the host that it stands for.
func (g *Guard) Address(r *http.Request) string {
	host, _ := sharedHost(r.Host)
	return g.scheme(r) + "://" + host + g.BasePath
}

// scheme returns the scheme by which the browser reaches us, as far as a trusted proxy tells it.
func (n Network) scheme(r *http.Request) string {
	if n.overTLS(r) {
		return "https"
	}
	return "http"
}

// overTLS reports whether the browser speaks TLS, to us or to a trusted proxy.
func (n Network) overTLS(r *http.Request) bool {
	return r.TLS != nil || n.trusts(remote(r)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// Browsers send a cookie to every port of its host, and any program of this machine may listen at a port of loopback.
// So a browser that signs in at loopback goes on at a host name of its own, of 130 random bits below localhost, which
// browsers resolve to this machine by themselves. The cookie is kept for that name alone. Who does not know the name
// cannot have the browser sent there: it stands in no header that another origin gets, and in no list of sockets.

// ownNames is the form of those names: the random part, and the host that they stand for.
//
//nolint:gochecknoglobals // compiled once; each request is held against it
var ownNames = regexp.MustCompile(`^([a-z2-7]{26})-(localhost|ip6|127(?:-\d{1,3}){3})\.localhost$`)

// ownName makes a host name for a browser that has asked for a host of loopback. The host may have a port, which stays.
func ownName(host string) string {
	name, port := hostName(host), portOf(host)
	switch {
	case strings.Contains(name, ":"):
		name = "ip6"
	default:
		name = strings.ReplaceAll(name, ".", "-")
	}
	return strings.ToLower(rand.Text()) + "-" + name + ".localhost" + port
}

// sharedHost returns the host of loopback that a browser's own name stands for, with its port; own is false for every
// other host, which is returned as it is.
func sharedHost(host string) (shared string, own bool) {
	parts := ownNames.FindStringSubmatch(hostName(host))
	switch {
	case parts == nil:
		return host, false
	case parts[2] == "localhost":
		return "localhost" + portOf(host), true
	case parts[2] == "ip6":
		return "[::1]" + portOf(host), true
	}
	shared = strings.ReplaceAll(parts[2], "-", ".")
	return shared + portOf(host), transport.IsLoopback(shared)
}

// portOf returns the port of a Host header with its colon; "" for none.
func portOf(host string) string {
	if _, port, err := net.SplitHostPort(host); err == nil {
		return ":" + port
	}
	return ""
}

// Own says how a browser that signs in at loopback goes on.
type Own struct {
	// Names is true where this server has the port at every address that names below localhost resolve to.
	Names bool
	// Why says, where Names is false, why a login has to be shared with every port of the host; "" silently leaves
	// browsers where they are.
	Why string
}

// Moves reports whether a request is a browser's that should sign in at a name of its own. Programs that sign in are
// left where they are: they keep their cookie to themselves, and many resolve no names below localhost.
func (g *Guard) Moves(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && g.Shares(r)
}

// Shares reports whether a cookie of this host reaches programs at other ports of this machine, and the server can say
// so: a proxy may know the browser by another host.
func (g *Guard) Shares(r *http.Request) bool {
	return (g.Own.Names || g.Own.Why != "") && !g.overTLS(r) && !forwarded(r) && !g.trusts(remote(r)) &&
		transport.IsLoopback(hostName(r.Host))
}

// OwnAddress returns the address of this server, with the base path, at a new name for one browser; "" where there are
// none.
func (g *Guard) OwnAddress(r *http.Request) string {
	if !g.Own.Names {
		return ""
	}
	return g.scheme(r) + "://" + ownName(r.Host) + g.BasePath
}

// AtOwnName reports whether a browser asks for a name of its own.
func (g *Guard) AtOwnName(r *http.Request) bool {
	_, own := sharedHost(r.Host)
	return own
}

// OnThisMachine reports whether a request asks for a host that is this machine by its form.
func (g *Guard) OnThisMachine(r *http.Request) bool {
	shared, _ := sharedHost(r.Host)
	return transport.IsLoopback(hostName(shared))
}
