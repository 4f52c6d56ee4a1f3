// This file compares web addresses by scheme, host and port, and says which hosts are this machine, and which
// addresses are of the internet. Nothing is looked up.

package transport

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Origin returns scheme, host and port of an address in one spelling, such as https://example.org:443. The port is
// there even if it is the scheme's own.
func Origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// SameOrigin reports whether two addresses have scheme, host and port in common.
func SameOrigin(a, b *url.URL) bool { return Origin(a) == Origin(b) }

// IsLoopback reports whether a host is this machine by its form: the name localhost, or an address of the loopback
// network without a zone. The host has no port and no brackets, as url.URL.Hostname gives it.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// IsConfidential reports whether a credential may be sent to an address: by https, or to this machine.
func IsConfidential(u *url.URL) bool {
	return strings.EqualFold(u.Scheme, "https") || strings.EqualFold(u.Scheme, "http") && IsLoopback(u.Hostname())
}

// IsPublic reports whether an address is one of the internet: none of private networks, of this machine or link, or for
// special purposes, and none that a gateway translates to another one (IANA's registries of special-purpose addresses,
// RFC 6890).
func IsPublic(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Zone() != "" {
		return false
	}
	for _, special := range []string{
		// this network, carriers, protocols, 6to4, benchmarks, reserved
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
		// documentation
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20",
		// reserved with what is translated to IPv4 or holds one, discarded, protocols with Teredo, 6to4, segments, site-local
		"::/8", "100::/64", "2001::/23", "2002::/16", "5f00::/16", "fec0::/10",
	} {
		if netip.MustParsePrefix(special).Contains(addr) {
			return false
		}
	}
	return true
}
