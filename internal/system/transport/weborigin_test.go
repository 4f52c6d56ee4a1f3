package transport_test

import (
	"net/netip"
	"testing"

	"github.com/claudeops/claudeops/internal/system/transport"
)

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.": false, "localhost.example": false, "127.0.0.1.example": false, "127.1": false,
		"0.0.0.0": false, "::": false,
		"[::1]": false, "::1%eth0": false, "127.0.0.1:80": false, "10.0.0.1": false, "::ffff:10.0.0.1": false,
		"169.254.169.254": false, "2130706433": false,
	} {
		if got := transport.IsLoopback(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"https://h.example/a", "HTTPS://H.example:443/b?c#d", true},
		{"http://h.example", "http://user@h.example:80/", true},
		{"http://[::1]/", "http://[::1]:80", true},
		{"https://h.example", "http://h.example", false},
		{"https://h.example", "https://h.example:8443", false},
		{"https://h.example", "https://h.example.", false},
		{"https://h.example", "https://www.h.example", false},
	} {
		if got := transport.SameOrigin(mustURL(t, c.a), mustURL(t, c.b)); got != c.want {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}

func TestConfidential(t *testing.T) {
	for address, want := range map[string]bool{
		"https://h.example": true, "http://localhost:1": true, "http://[::1]:1": true, "HTTPS://h.example": true,
		"http://h.example": false, "http://127.0.0.1.h.example": false, "ftp://localhost": false, "//localhost": false,
	} {
		if got := transport.IsConfidential(mustURL(t, address)); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"1.1.1.1": true, "9.255.255.255": true, "172.32.0.1": true, "192.169.0.1": true, "2606:4700::1111": true,
		"::ffff:1.1.1.1": true,
		"10.0.0.1":       false, "172.16.0.1": false, "192.168.1.1": false, "127.0.0.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.1.2.3": false,
		"0.0.0.0": false, "192.0.0.8": false, "198.18.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"224.0.0.1": false,
		"::":        false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fd00::1": false, "fec0::1": false,
		"ff02::1": false, "::ffff:10.0.0.1": false,
		"64:ff9b::10.0.0.1": false, "64:ff9b:1::1": false, "2002:a00:1::1": false, "2001::1": false,
		"192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "192.88.99.1": false, "2001:db8::1": false,
		"3fff::1": false, "::127.0.0.1": false, "::a00:1": false, "100::1": false, "2001:2::1": false, "5f00::1": false,
		"2001:200::1": true, "192.0.1.1": true,
	} {
		if got := transport.IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
	if transport.IsPublic(netip.Addr{}) {
		t.Error("no address is one of the internet")
	}
}
