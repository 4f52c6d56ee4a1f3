package remote

import (
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/base/weborigin"
)

// schemes are those of addresses that a connector may have.
func schemes() []string { return []string{"http", "https", "unix"} }

// endpoint is the URL at which connections are opened: that of Path below an address.
func endpoint(address string) (*url.URL, error) {
	bad := func(problem string) error {
		return &connect.AddressError{Address: address, Schemes: schemes(), Problem: problem}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, bad("it is malformed") // the error quotes the address, which may have a password
	case u.Host == "" || u.Hostname() == "":
		return nil, bad("it names no host: https://HOST[/PATH]")
	case u.User != nil:
		return nil, bad("it has a user or a password; the token is in the file that --ticket-file names")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, bad("it has more than host, port and path")
	case !weborigin.Confidential(u):
		return nil, bad("http:// sends the token readable for everybody on the way, so that it is for this machine alone; use https://")
	}
	u.Fragment, u.RawFragment = "", ""
	return u.JoinPath(Path), nil
}

// Check says what is wrong with the address of a server: a *connect.AddressError, or nil.
func Check(address string) error {
	if scheme, _, _ := strings.Cut(address, ":"); scheme != "http" && scheme != "https" {
		return &connect.AddressError{Address: address, Schemes: schemes()}
	}
	_, err := endpoint(address)
	return err
}
