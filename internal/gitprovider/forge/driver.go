// This file says what the product has to know of a forge beside its Provider: which variables configure it, which
// clone URLs lead to it, how its Provider is made, and how it signs its webhooks. The package of each forge gives a
// Driver, and internal/gitprovider/forges lists them; everything else (configuration, wiring, webhooks, doctor) walks
// over that list.

package forge

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Driver is a kind of forge that is reached over HTTP.
type Driver struct {
	// Name is the provider's name in configuration and records: "github". The variables begin with it in capitals:
	// GITHUB_.
	Name string
	// Variables configure it, in the order in which documentation has them; that of HookVariable is not among them.
	Variables []Variable
	// Read reads the variables. It never fails: a Problem says what is wrong with them. HookSecret is not its business.
	Read func(Environment) Settings
	// Hosts are the hosts of clone URLs that lead to the forge; base is nil if none is configured.
	Hosts func(base *url.URL) []string
	// New makes the Provider, and returns the transport of its requests. It sends none. The error names the variable to
	// correct.
	New func(Settings, Runtime) (gitprovider.Provider, *transport.Transport, error)
	// Webhooks says how the forge signs and names what it sends.
	Webhooks Source
}

// Variable is one variable that the product reads.
type Variable struct {
	Name, Meaning string
	// what holds when it is unset, as the configuration of an MCP client passes it on; "" if that needs words
	Default string
	Values  string // what it may be, with its bounds, in words; "" if its meaning says it
	Secret  bool   // has the form NAME_FILE, too
	Server  bool   // is read by `claudeops mcp-server` (design §4, Configuration)
	Needed  bool   // without it the provider is off
	Each    bool   // there is one for each name that the operator chooses, which stands in place of NAME
}

// Prefix begins the names of the forge's variables.
func (d Driver) Prefix() string { return strings.ToUpper(d.Name) + "_" }

// Prefixes returns the prefixes of the variables of the drivers.
func Prefixes(drivers []Driver) (out []string) {
	for _, d := range drivers {
		out = append(out, d.Prefix())
	}
	return out
}

// HookVariable holds the secret of the forge's webhooks.
func (d Driver) HookVariable() Variable {
	return Variable{
		Name: d.Prefix() + "WEBHOOK_SECRET", Secret: true,
		Meaning: "secret of the webhooks of " + d.Webhooks.Title + ", 16 characters or more; without it they are refused",
	}
}

// Needed names the variables without which the provider is off, for people: "GITEA_URL and GITEA_TOKEN".
func (d Driver) Needed() string {
	var names []string
	for _, v := range d.Variables {
		if v.Needed {
			names = append(names, v.Name)
		}
	}
	return strings.Join(names, " and ")
}

// Runtime holds what the process provides to a Provider.
type Runtime struct {
	// Client makes an HTTP client for the address and the token of the settings, to which the options add what only the
	// forge knows.
	Client func(Settings, transport.Options) (*transport.Transport, error)
	// Learn has a secret redacted from now on, until forget is called.
	Learn        func(secret string) (forget func())
	CreateLabels func() bool // whether labels that a repository lacks are made, asked each time; nil: they are not
	// Paths remembers beyond the process which files pull requests change; nil: only in the process.
	Paths PathMemory
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) // ends early with ctx
}

// PathMemory remembers what a pull request changes while its commits stay the same. It is best effort: an entry that is
// lost costs one request. Implementations are safe for concurrent use.
type PathMemory interface {
	// PathsAt returns the files that were remembered; false if none were.
	PathsAt(ctx context.Context, repo gitprovider.RepoRef, number int, head string) ([]string, bool)
	// RememberPaths keeps the files. head is opaque: it names the head commit and the merge base, since both decide what
	// the files are.
	RememberPaths(ctx context.Context, repo gitprovider.RepoRef, number int, head string, paths []string)
}

// Environment reads variables.
type Environment interface {
	// Get returns a variable, "" if it is unset.
	Get(name string) string
	// Secret returns a variable, or the content of the file that NAME_FILE names.
	Secret(name string) Secret
	// Warn tells the operator about something that is not as it seems.
	Warn(format string, args ...any)
}

// Secret is a token or a key.
type Secret struct {
	Text string
	File string // where Text is from, so that it can be read again; "" if it is from a variable
}

// Source returns the secret while the process runs: if it is from a file, the file may be replaced. learn is called
// with its new content.
func (s Secret) Source(learn func(text string) (forget func())) transport.Source {
	if s.File == "" {
		return constant(s.Text)
	}
	return files.NewSecretFile(s.File, s.Text, func(text string) { learn(Redacted(text)) })
}

// constant is a secret that was given in a variable, and stays.
type constant string

// Value implements transport.Source.
func (c constant) Value() string { return string(c) }

// Reread implements transport.Source.
func (c constant) Reread() string { return string(c) }

// IsKey reports whether a secret is a private key in PEM.
func IsKey(secret string) bool { return strings.HasPrefix(secret, "-----BEGIN") }

// Redacted returns a secret in the form in which texts are searched for it: a key gets real line breaks, which a
// variable may have as \n, so that the parts that all keys share are distinguished from the secret ones.
func Redacted(secret string) string {
	if !IsKey(secret) {
		return secret
	}
	return strings.ReplaceAll(secret, `\n`, "\n")
}

// Settings is the configuration of one forge.
type Settings struct {
	URL        *url.URL // with a slash at its end; nil if it is missing or invalid
	Token      Secret
	App        *App   // in whose name to act, instead of with Token; nil: none
	Problem    string // why it cannot be used, naming the variable; "": nothing speaks against trying
	HookSecret string // of its webhooks; "" if there is none that is long enough
	Configured bool   // somebody configured it, so that a Problem is a mistake and not a choice
}

// App is an application that is registered at the forge, in whose name requests are made.
type App struct {
	ID  string
	Key Secret // its private key in PEM
}

// AddressAndToken returns the settings of a forge that needs these two, defaultURL if there is one everybody knows.
func AddressAndToken(e Environment, urlName, defaultURL, tokenName string) Settings {
	given, token := e.Get(urlName), e.Secret(tokenName)
	s := Settings{Configured: token.Text != "" || given != "" && defaultURL == ""}
	u, err := ParseURL(urlName, cmp.Or(given, defaultURL))
	switch {
	case token.Text == "" && given == "" && defaultURL == "":
		s.Problem = urlName + " and " + tokenName + " are not set"
	case token.Text == "":
		s.URL, s.Problem = u, tokenName+" is not set"
	case err != nil:
		s.Token, s.Problem = token, err.Error()
	default:
		s.URL, s.Token = u, token
	}
	return s
}

// ParseURL reads the address of a forge or its API. The text itself is in no error: it may hold a password.
func ParseURL(name, text string) (*url.URL, error) {
	if text == "" {
		return nil, fmt.Errorf("%s is not set", name)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%s is not an address of the form https://host/", name)
	case u.User != nil:
		return nil, fmt.Errorf("%s carries a user name or password; give the token in its own variable", name)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s has a query or a fragment; give the plain address", name)
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	u.RawPath = ""
	return u, nil
}

// Hosts returns the hosts of clone URLs that lead to a server: with its port, and, as in ssh URLs, without.
func Hosts(server *url.URL) []string {
	if server.Port() == "" {
		return []string{server.Host}
	}
	return []string{server.Host, server.Hostname()}
}
