package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Remote is another repository that a call speaks to. Only the protocol of its address is used, and https where http
// leads to it.
type Remote struct {
	// URL is https, http, ssh, git or file, git's short form of ssh (user@host:path), or a path.
	URL trust.Operator[string]
	// Exact forbids that a server of https and http leads on to another address.
	Exact bool
	// Public refuses a host that has an address of this machine or of a private network, with ErrPrivate. Over https and
	// http git then asks the addresses that were looked at (from git 2.37 on). Where a proxy finds the host, what it
	// reaches is for the proxy to say.
	Public bool
	// Credentials is a file in the form of git's credential store; "" for none. Git finds there what to sign in with for
	// the scheme and host, with its port, that ask for it, and does not change it.
	Credentials string
	// Token signs in at the host of URL alone, in place of Credentials; "" for none. It is given to https alone, and to
	// http on this machine (errNotConfidential). It is in no argument, variable or file of git's. Not on Windows.
	Token string
	// Silence limits how long a server may send nothing, where git or ssh can notice that; at least 1 s.
	Silence time.Duration
}

// Lookup finds the addresses of a host.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// Errors of a Remote.
var (
	errNotNamed        = errors.New("the operator has not named it")
	ErrPrivate         = errors.New("its host is this machine or of a private network")
	errNotConfidential = errors.New("its token would go over a connection that others can read; use https")
)

// credentialHelper lets git look up what to sign in with in a file whose path is in the environment, and has git not
// change the file, as it would when a server refuses a token.
const credentialHelper = `!f() { test "$1" = get && git credential-store --file="$CLAUDEOPS_GIT_CREDENTIALS" get; }; f`

// tokenHelper lets git read what to sign in with from its file 3. Forges that know tokens take any name of a user with
// them.
const tokenHelper = `!f() { test "$1" = get && cat <&3; }; f`

// added holds a Remote's additions to a call.
type added struct {
	protocols   string
	config, env []string
	secret      []byte
}

// parsedURL returns the URL that git takes an address for.
func (m *Remote) parsedURL() (u *url.URL, err error) {
	text := m.URL.Value()
	if strings.Contains(text, "://") {
		return url.Parse(text)
	}
	short := regexp.MustCompile(`^(?:[^/:@]+@)?(\[[^\]/]+\]|[^/:]+):`).FindStringSubmatch(text)
	if short == nil || filepath.VolumeName(text) != "" {
		return &url.URL{Scheme: "file", Path: text}, nil
	}
	return &url.URL{Scheme: "ssh", Host: short[1]}, nil
}

// adds makes what a call that speaks to the remote has in addition. It looks up the host if that must be public.
func (m *Remote) adds(ctx context.Context, r *Runner) (d added, err error) {
	if _, named := m.URL.Get(); !named {
		return d, errNotNamed
	}
	u, err := m.parsedURL()
	if err != nil {
		return d, errors.New("its address is not a URL") // whose text has what one signs in with
	}
	d.protocols = map[string]string{"https": "https", "http": "http:https", "ssh": "ssh", "git": "git",
		"file": "file"}[u.Scheme]
	seconds := max(int(m.Silence/time.Second), 1)
	d.config = []string{"http.lowSpeedLimit=1", fmt.Sprintf("http.lowSpeedTime=%d", seconds)}
	d.env = []string{fmt.Sprintf(
		"GIT_SSH_COMMAND=ssh -o BatchMode=yes -o ConnectTimeout=%d -o ServerAliveInterval=%d -o ServerAliveCountMax=1",
		seconds, seconds)}
	if m.Exact {
		d.config = append(d.config, "http.followRedirects=false")
	}
	if m.Public {
		pinned, err := m.pin(ctx, r, u)
		if err != nil {
			return d, err
		}
		d.config = append(d.config, pinned...)
	}
	switch {
	case m.Token != "" && !transport.IsConfidential(u):
		return d, errNotConfidential
	case m.Token != "" && strings.ContainsAny(m.Token, "\n\x00"):
		return d, errors.New("its token has more than one line")
	case m.Token != "":
		d.config = append(d.config, "credential."+u.Scheme+"://"+u.Host+".helper="+tokenHelper)
		d.secret = []byte("username=x-access-token\npassword=" + m.Token + "\n")
	case m.Credentials != "":
		d.config = append(d.config, "credential.helper="+credentialHelper)
		d.env = append(d.env, "CLAUDEOPS_GIT_CREDENTIALS="+m.Credentials)
	}
	return d, nil
}

// pin checks the addresses of a host: ErrPrivate if one is not of the internet. The settings that it returns keep git
// to them. A host that is not found is refused: curl and ssh accept more forms of addresses than the resolver does.
func (m *Remote) pin(ctx context.Context, r *Runner, u *url.URL) (config []string, err error) {
	host, web := u.Hostname(), u.Scheme == "https" || u.Scheme == "http"
	if host == "" || web && r.proxied(u) {
		return nil, nil
	}
	lookup := r.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	found, err := lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("its host is not found: %w", err)
	}
	var list []string
	for _, addr := range found {
		if !transport.IsPublic(addr) {
			return nil, ErrPrivate
		}
		list = append(list, addr.Unmap().WithZone("").String())
	}
	if _, err := netip.ParseAddr(host); err == nil || !web || len(list) == 0 {
		return nil, nil
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	return []string{"http.curloptResolve=" + host + ":" + port + ":" + strings.Join(list, ",")}, nil
}

// proxied reports whether git asks a proxy for an address.
func (r *Runner) proxied(u *url.URL) bool {
	of := func(names ...string) string {
		for _, name := range names {
			if i := slices.IndexFunc(r.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") }); i >= 0 {
				return r.Env[i][len(name)+1:]
			}
		}
		return ""
	}
	config := httpproxy.Config{HTTPProxy: of("http_proxy"), HTTPSProxy: of("https_proxy", "HTTPS_PROXY"),
		NoProxy: of("no_proxy", "NO_PROXY")}
	proxy, err := config.ProxyFunc()(u)
	return err == nil && proxy != nil
}

const nowhere = "/nonexistent"

// always returns the environment of every call, whatever the Runner and the call add: no variable of this process, of a
// repository's owner or of an address leads git to other configuration, programs or machines. protocols are those that
// the call may use, with colons; "" for none.
func always(protocols string) []string {
	return []string{
		"LC_ALL=C", // words that can be recognized
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true",                // is run, and answers nothing
		"GIT_ALLOW_PROTOCOL=" + protocols, // wins over every protocol.*.allow; an empty list allows none
		"GIT_NO_LAZY_FETCH=1",             // of objects that a partial clone lacks
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1", // the id of a commit means this commit, also where refs/replace came with a fetch
		"GIT_CEILING_DIRECTORIES=" + string(os.PathSeparator),
	}
}

// fixedSettings returns the settings of every call, which override the repository's configuration: programs that it
// would start, and the network.
func fixedSettings() []string {
	return []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "credential.helper=", "protocol.allow=never",
		"protocol.ext.allow=never",
		"gc.auto=0", "maintenance.auto=false",
	}
}

// gitEnv returns all variables of a call, each once: always wins over the call's, and that over the Runner's.
func (r *Runner) gitEnv(program string, c Call, remote added) []string {
	home, configured := r.Home, ""
	if home == "" {
		home, configured = nowhere, nowhere
	}
	list := []string{"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin", "HOME=" + home}
	if configured != "" {
		list = append(list, "XDG_CONFIG_HOME="+configured)
	}
	list = slices.Concat(list, r.Env, c.Env, remote.env, always(remote.protocols))
	at := make(map[string]int, len(list))
	out := list[:0:0]
	for _, variable := range list {
		name, _, _ := strings.Cut(variable, "=")
		if i, has := at[name]; has {
			out[i] = variable
			continue
		}
		at[name] = len(out)
		out = append(out, variable)
	}
	return out
}

// started is a call as it is handed to the system.
type started struct {
	call           Call
	program, dir   string
	args, env      []string
	secret         []byte // what git's helpers find in their file 3
	stdout, stderr io.Writer
}

// prepareCall makes the arguments and the environment of a call. The call's own settings come first: those of every
// call win.
func (r *Runner) prepareCall(ctx context.Context, c Call) (*started, error) {
	program, err := r.gitPath()
	if err != nil {
		return nil, err
	}
	var remote added
	if c.Remote != nil {
		if remote, err = c.Remote.adds(ctx, r); err != nil {
			return nil, err
		}
	}
	s := &started{call: c, program: program, dir: c.Dir, secret: remote.secret, env: r.gitEnv(program, c, remote)}
	if c.GitDir != "" {
		s.args = append(s.args, "--git-dir="+c.GitDir)
	}
	for _, pair := range slices.Concat(c.Config, fixedSettings(), remote.config) {
		s.args = append(s.args, "-c", pair)
	}
	s.args = append(s.args, c.Args...)
	if s.dir == "" {
		s.dir = c.GitDir
	}
	if s.dir == "" { // not the folder of this process, which may be a repository, with a configuration of its own
		s.dir = string(os.PathSeparator)
	}
	return s, nil
}
