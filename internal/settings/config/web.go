package config

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/identity"
)

// How long a start waits unless the operator says otherwise, and the longest that they may say.
const (
	defaultStartWait = 30 * time.Second
	maxStartWait     = time.Hour
)

// DefaultAddr is the default address of `claudeops serve`: only this machine can connect.
const DefaultAddr = "127.0.0.1:8080"

// Web configures how `claudeops serve` is reached. Problem names the variable that is malformed, "" if none is: a
// server must not start on a guess of who may call it.
type Web struct {
	Addr     string // host:port; an empty host is every interface
	Hosts    []string
	BasePath string // "" or "/ops"
	// PublicURL is the address at which browsers reach the server, base path included, without a slash at its end; "" if
	// not configured.
	PublicURL       string
	Tokens          []string
	TrustedProxies  []netip.Prefix
	ProxyUserHeader string
	AnonymousRead   bool // callers on this machine may read without a token
	LogJSON         bool
	StartWait       time.Duration       // how long a start waits for the machine; 0: not at all
	DoorSocket      string              // where agents with tokens connect; "" for nowhere
	SignIn          []identity.Settings // providers by which people sign in, in the order of the buttons
	Problem         string
}

// Host returns the host of Addr; "" is every interface.
func (w Web) Host() string {
	host, _, err := net.SplitHostPort(w.Addr)
	if err != nil {
		return ""
	}
	return host
}

func (e *env) web() Web {
	w := Web{
		Addr: e.get("CLAUDEOPS_ADDR"), Hosts: splitList(strings.ToLower(e.get("CLAUDEOPS_HOSTS"))),
		BasePath: strings.TrimRight(e.get("CLAUDEOPS_BASE_PATH"), "/"), Tokens: splitList(e.secret("CLAUDEOPS_API_TOKENS")),
		ProxyUserHeader: e.get("CLAUDEOPS_PROXY_USER_HEADER"),
		AnonymousRead:   e.permission("CLAUDEOPS_ANONYMOUS_READ"),
		DoorSocket:      absolute(e.get("CLAUDEOPS_DOOR_SOCKET")),
		LogJSON:         strings.EqualFold(e.get("CLAUDEOPS_LOG_FORMAT"), "json"),
	}
	w.StartWait, w.Problem = e.startWait()
	if w.Addr == "" {
		w.Addr = DefaultAddr
	}
	if _, port, err := net.SplitHostPort(w.Addr); err != nil || port == "" {
		w.Problem = "CLAUDEOPS_ADDR is not of the form host:port"
	}
	if !regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`).MatchString(w.BasePath) || w.BasePath != "" &&
		path.Clean(w.BasePath) != w.BasePath {
		w.Problem = "CLAUDEOPS_BASE_PATH is no path such as /ops"
	}
	public, problem := publicURL(e.get("CLAUDEOPS_PUBLIC_URL"), w.BasePath)
	if w.PublicURL = public; problem != "" {
		w.Problem = problem
		e.warn("%s; local pull requests have no address that a browser opens", problem)
	}
	for _, entry := range splitList(e.get("CLAUDEOPS_TRUSTED_PROXIES")) {
		prefix, err := parseNetwork(entry)
		if err != nil {
			w.Problem = "CLAUDEOPS_TRUSTED_PROXIES is no list of addresses and networks such as 10.0.0.0/8"
			continue
		}
		w.TrustedProxies = append(w.TrustedProxies, prefix.Masked())
	}
	if w.ProxyUserHeader != "" {
		if !regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(w.ProxyUserHeader) {
			w.Problem = "CLAUDEOPS_PROXY_USER_HEADER is no name of a header"
		} else if len(w.TrustedProxies) == 0 {
			w.Problem = "CLAUDEOPS_PROXY_USER_HEADER needs CLAUDEOPS_TRUSTED_PROXIES, or anybody could name themselves"
		}
	}
	w.SignIn, problem = e.signIn(w.PublicURL)
	if problem != "" {
		w.Problem = problem
	}
	for _, host := range w.Hosts {
		if strings.ContainsAny(host, "/:") && !isIP(host) {
			w.Problem = "CLAUDEOPS_HOSTS is a list of names and addresses without scheme, port and path"
		}
	}
	if w.AnonymousRead && (w.BasePath != "" || len(w.TrustedProxies) > 0 || len(w.Hosts) > 0) {
		w.Problem = "CLAUDEOPS_ANONYMOUS_READ is for a server that only this machine reaches: behind a proxy " +
			"(CLAUDEOPS_BASE_PATH, " +
			"CLAUDEOPS_TRUSTED_PROXIES, CLAUDEOPS_HOSTS) strangers come from this machine, too"
	}
	return w
}

// parseNetwork reads a network, or an address, which is a network of itself alone.
func parseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// startWait reads CLAUDEOPS_START_WAIT.
func (e *env) startWait() (wait time.Duration, problem string) {
	raw := e.get("CLAUDEOPS_START_WAIT")
	if raw == "" {
		return defaultStartWait, ""
	}
	wait, err := time.ParseDuration(raw)
	if raw == "0" {
		wait, err = 0, nil
	}
	if err != nil || wait < 0 || wait > maxStartWait {
		return 0, "CLAUDEOPS_START_WAIT is no time from 0 to 1h, such as 30s"
	}
	return wait, ""
}

// publicURL returns an address of the server with its base path, whether or not it was given with it.
func publicURL(given, basePath string) (address, problem string) {
	if given == "" {
		return "", ""
	}
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.ForceQuery ||
		u.Fragment != "" || strings.ContainsFunc(given, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", "CLAUDEOPS_PUBLIC_URL is no address such as https://ops.example, without a name, a query and a fragment"
	}
	if path := strings.TrimRight(u.EscapedPath(), "/"); path != "" && path != basePath {
		return "", "the path of CLAUDEOPS_PUBLIC_URL is not that of CLAUDEOPS_BASE_PATH"
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + basePath, ""
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
