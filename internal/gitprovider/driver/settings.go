package driver

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/system/secretfile"
	"github.com/claudeops/claudeops/internal/system/transport"
)

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
	return secretfile.New(s.File, s.Text, func(text string) { learn(Redacted(text)) })
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
		return nil, fmt.Errorf("%s is no address of the form https://host/", name)
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
