package guard

import (
	"crypto/rand"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/base/weborigin"
)

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
	return shared + portOf(host), weborigin.Loopback(shared)
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
		weborigin.Loopback(hostName(r.Host))
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
	return weborigin.Loopback(hostName(shared))
}
