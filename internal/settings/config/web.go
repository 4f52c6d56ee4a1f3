package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
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
	// Documents lets the server read the documents in which programs describe themselves, at any host of the internet.
	Documents  bool
	LogJSON    bool
	StartWait  time.Duration       // how long a start waits for the machine; 0: not at all
	DoorSocket string              // where agents with tokens connect; "" for nowhere
	SignIn     []identity.Settings // providers by which people sign in, in the order of the buttons
	Problem    string
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
		Documents:       e.get("CLAUDEOPS_CLIENT_DOCUMENTS") == "" || e.permission("CLAUDEOPS_CLIENT_DOCUMENTS"),
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
		w.Problem = "CLAUDEOPS_BASE_PATH is not a path such as /ops"
	}
	public, problem := publicURL(e.get("CLAUDEOPS_PUBLIC_URL"), w.BasePath)
	if w.PublicURL = public; problem != "" {
		w.Problem = problem
		e.warn("%s; local pull requests have no address that a browser opens", problem)
	}
	for _, entry := range splitList(e.get("CLAUDEOPS_TRUSTED_PROXIES")) {
		prefix, err := parseNetwork(entry)
		if err != nil {
			w.Problem = "CLAUDEOPS_TRUSTED_PROXIES is not a list of addresses and networks such as 10.0.0.0/8"
			continue
		}
		w.TrustedProxies = append(w.TrustedProxies, prefix.Masked())
	}
	if w.ProxyUserHeader != "" {
		if !regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(w.ProxyUserHeader) {
			w.Problem = "CLAUDEOPS_PROXY_USER_HEADER is not a valid header name"
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
		return 0, "CLAUDEOPS_START_WAIT is not a duration from 0 to 1h, such as 30s"
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
		return "", "CLAUDEOPS_PUBLIC_URL is not an address such as https://ops.example, without a name, a query and a fragment"
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

// maxSignIn limits the providers that people can choose from.
const maxSignIn = 10

// signIn reads the providers by which people sign in. problem names the variable that is missing or malformed: a server
// must not start with fewer providers than the operator wants, or with others.
func (e *env) signIn(publicURL string) (out []identity.Settings, problem string) {
	names := splitList(strings.ToLower(e.get("CLAUDEOPS_SIGN_IN")))
	switch {
	case len(names) == 0:
		return nil, ""
	case len(names) > maxSignIn:
		return nil, fmt.Sprintf("CLAUDEOPS_SIGN_IN names more than %d providers", maxSignIn)
	case publicURL == "":
		return nil, "CLAUDEOPS_SIGN_IN needs CLAUDEOPS_PUBLIC_URL, the address at which browsers reach this server"
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Sprintf("CLAUDEOPS_SIGN_IN names %s twice", quoteShort(name))
		}
		s := e.signInAt(name)
		if err := s.Check(); err != nil {
			return nil, fmt.Sprintf("CLAUDEOPS_SIGN_IN: the provider %s: %s", quoteShort(name), err)
		}
		out = append(out, s)
	}
	return out, ""
}

// signInAt reads the variables of one provider.
func (e *env) signInAt(name string) identity.Settings {
	of := func(what string) string { return signInVariable(name, what) }
	s := identity.Settings{
		Name: name, Kind: identity.Kind(cmp.Or(strings.ToLower(e.get(of("KIND"))), string(identity.OpenID))),
		Issuer:   e.get(of("ISSUER")),
		ClientID: e.get(of("CLIENT_ID")), ClientSecret: e.secret(of("CLIENT_SECRET")), Text: e.get(of("TEXT")),
		Scopes:      splitList(e.get(of("SCOPES"))),
		GroupsClaim: e.get(of("GROUPS_CLAIM")), Hosts: splitList(e.get(of("HOSTS"))),
		PlainHTTP: e.permission(of("PLAIN_HTTP")),
	}
	if name == "github" && e.get(of("KIND")) == "" {
		s.Kind = identity.GitHub
	}
	if s.Kind == identity.GitHub {
		s.Issuer = strings.TrimRight(cmp.Or(s.Issuer, identity.GitHubIssuer), "/")
	}
	if s.Text == "" {
		s.Text = "Continue with " + signInName(name)
	}
	return s
}

// signInSecretFiles returns the files of their client secrets.
func (e *env) signInSecretFiles() (out []string) {
	for _, name := range splitList(e.get("CLAUDEOPS_SIGN_IN")) {
		out = append(out, signInVariable(name, "CLIENT_SECRET_FILE"))
	}
	return out
}

// signInName returns a provider's name as people write it.
func signInName(name string) string {
	if known := map[string]string{"github": "GitHub", "gitlab": "GitLab"}[name]; known != "" {
		return known
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// signInVariables lists them, with NAME in place of a provider's name.
func signInVariables() []Variable {
	return []Variable{
		{Name: "CLAUDEOPS_SIGN_IN", Meaning: "providers by which people sign in; each has the variables below",
			Values: "names of your choice, such as gitea,github, separated by commas; needs CLAUDEOPS_PUBLIC_URL"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_ISSUER", Each: true,
			Meaning: "address of the provider NAME, exactly as it gives it itself",
			Values:  "such as https://git.example/; of GitHub its pages, https://github.com if unset"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_CLIENT_ID", Each: true,
			Meaning: "client id of the application that is registered there"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_CLIENT_SECRET", Each: true, Meaning: "its client secret; unset for a public client",
			Secret: true},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_KIND", Each: true, Meaning: "what the provider speaks",
			Values: "oidc or github; unset means github for the name github, else oidc"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_TEXT", Each: true, Meaning: "text of its button",
			Values: "unset means Continue with NAME"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_SCOPES", Each: true, Meaning: "scopes to ask for, in place of the usual ones",
			Values: "such as profile groups offline_access"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_GROUPS_CLAIM", Each: true, Meaning: "claim that names the groups of a person",
			Default: identity.DefaultGroups},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_HOSTS", Each: true, Meaning: "further addresses that the provider may name for itself",
			Values: "such as https://oauth2.example, separated by commas"},
		{Name: "CLAUDEOPS_SIGN_IN_NAME_PLAIN_HTTP", Each: true,
			Meaning: "lets the provider be asked over plain http on another machine",
			Values:  "true or false; unset and anything else is false"},
	}
}
