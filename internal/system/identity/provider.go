// Package identity asks providers of identities who a person is: OpenID Connect, which Gitea, Forgejo, Keycloak and
// Authentik speak, and the OAuth of GitHub. It does not sign anyone in; it only returns the person that the provider
// has recognised.
//
// A provider is not asked before somebody signs in. What it says is checked: issuer, audience, expiry, nonce and
// signature of the ID token, the subject of further answers, and the clock. Its hosts are those that the operator has
// named.
package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Bounds of what a provider is asked.
const (
	timeout    = 10 * time.Second // of one request
	maxAnswer  = 1 << 20          // bytes of one answer
	redirects  = 2
	allowedGap = 5 * time.Minute // between our clock and the provider's
	// rediscover is how long the addresses of a provider are cached.
	rediscover = time.Hour
)

// Person is a person that a provider has recognised.
type Person struct {
	Provider string   // name of the provider, as the operator has it
	Issuer   string   // of the provider
	Subject  string   // what the provider calls the person, for ever
	User     string   // name that the person signs in with there; "" where the provider has none. It may pass to others
	Groups   []string // as the provider names them, sorted; organisations and teams where those are its groups
	Session  string   // of the person at the provider, for its logout; "" where it has none
}

// Grant permits asking a provider again about a person. It is secret.
type Grant struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // of Access; zero if the provider does not say
}

// Flow is one attempt to sign in, known only to the browser that makes it.
type Flow struct {
	State    string `json:"state"`    // comes back with the browser
	Nonce    string `json:"nonce"`    // comes back in the ID token
	Verifier string `json:"verifier"` // of PKCE
}

// NewFlow makes a Flow of random bytes, 32 each.
func NewFlow(random io.Reader) (Flow, error) {
	var parts [3]string
	for i := range parts {
		b := make([]byte, 32)
		if _, err := io.ReadFull(random, b); err != nil {
			return Flow{}, fault.From(err)
		}
		parts[i] = base64.RawURLEncoding.EncodeToString(b)
	}
	return Flow{State: parts[0], Nonce: parts[1], Verifier: parts[2]}, nil
}

// Logout is a provider's notice that a person has signed out there. One of Subject and Session may be "".
type Logout struct {
	Issuer, Subject, Session string
	// ID is the token's own, by which one that comes again is known.
	ID string
}

// LogoutLife is how long a logout token can arrive: its age may be allowedGap, by either clock.
const LogoutLife = 2 * allowedGap

// Provider is one provider of identities. It is safe for concurrent use.
type Provider struct {
	settings Settings
	secret   func() string
	redirect string // where the browser comes back to
	client   *http.Client
	now      func() time.Time
	speaks   speaker
}

// speaker holds the differences between the kinds. Errors are faults.
type speaker interface {
	// config returns the configuration of the OAuth library.
	config(ctx context.Context) (oauth2.Config, error)
	// beginOptions are further parameters of the address to sign in at.
	beginOptions(f Flow) []oauth2.AuthCodeOption
	// who reads the person from a fresh token. nonce is "" where the token does not answer a sign-in.
	who(ctx context.Context, t *oauth2.Token, nonce string) (Person, error)
	// checkProvider asks what can be asked without a person, and returns what to know about the provider.
	checkProvider(ctx context.Context) (notes []string, err error)
	// logout reads what the provider posts when a person signs out.
	logout(ctx context.Context, token string) (Logout, error)
}

// Options configures a Provider. All fields are required except Over and Secret.
type Options struct {
	Secret   func() string     // the client secret as it is now; nil for that of the Settings
	Over     http.RoundTripper // carries the requests; nil for transport.NewPool(http.ProxyFromEnvironment)
	Redirect string            // address of the server's pages that browsers come back to; the provider's name follows
	Now      func() time.Time
}

// New makes a Provider. It sends no request.
func New(s Settings, o Options) *Provider {
	if o.Over == nil {
		o.Over = transport.NewPool(http.ProxyFromEnvironment)
	}
	client := transport.NewClient(transport.ClientOptions{
		Over: o.Over, Host: operators(s), Redirects: redirects, MaxBody: maxAnswer, Timeout: timeout,
	})
	if o.Secret == nil {
		o.Secret = func() string { return s.ClientSecret }
	}
	p := &Provider{settings: s, secret: o.Secret, redirect: o.Redirect + s.Name, client: client.Standard(), now: o.Now}
	if s.Kind == GitHub {
		p.speaks = &github{p}
	} else {
		p.speaks = &openid{Provider: p, mu: &sync.Mutex{}, keys: newKeys(p.client, o.Now)}
	}
	return p
}

// operators returns the hosts that the operator has named for a provider.
func operators(s Settings) func(*url.URL) trust.Operator[transport.Host] {
	hosts := s.hosts()
	return func(u *url.URL) trust.Operator[transport.Host] {
		for _, host := range hosts {
			if transport.SameOrigin(u, host) {
				return trust.Said(transport.Host{Private: true, Plain: s.PlainHTTP})
			}
		}
		return trust.Operator[transport.Host]{}
	}
}

// Name returns the name that the operator has given to the provider.
func (p *Provider) Name() string { return p.settings.Name }

// Key returns a secret that this server shares with the provider alone; "" for a public client.
func (p *Provider) Key() string { return p.secret() }

// Text returns the text of the button.
func (p *Provider) Text() string { return p.settings.Text }

// Kind returns the provider's protocol.
func (p *Provider) Kind() Kind { return p.settings.Kind }

// Issuer returns the provider's address, as it is in a Person.
func (p *Provider) Issuer() string { return p.settings.Issuer }

// Redirect returns the address that has to be entered at the provider.
func (p *Provider) Redirect() string { return p.redirect }

// Begin returns the address at which a browser signs in.
//
// Errors: upstream_error and timeout for a provider that does not answer as it should.
func (p *Provider) Begin(ctx context.Context, f Flow) (address string, err error) {
	c, err := p.speaks.config(ctx)
	if err != nil {
		return "", err
	}
	return c.AuthCodeURL(f.State, append(p.speaks.beginOptions(f), oauth2.S256ChallengeOption(f.Verifier))...), nil
}

// Finish exchanges the code that a browser has brought back.
//
// Errors: unauthenticated for an invalid code or answer, and those of Begin.
func (p *Provider) Finish(ctx context.Context, f Flow, code string) (Person, Grant, error) {
	c, err := p.speaks.config(ctx)
	if err != nil {
		return Person{}, Grant{}, err
	}
	token, err := c.Exchange(p.withClient(ctx), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, Grant{}, p.convertError(err,
			"did not take the code: it is used up, too old, or was not given to this server")
	}
	who, err := p.readPerson(ctx, token, f.Nonce)
	return who, p.grantOf(token), err
}

// Look asks again who a person is, and what they belong to now. The Grant that is returned takes the place of the old
// one, also where the error is not unauthenticated.
//
// Errors: unauthenticated if the provider no longer recognises the person, and those of Begin.
func (p *Provider) Look(ctx context.Context, was Person, g Grant) (Person, Grant, error) {
	token := &oauth2.Token{AccessToken: g.Access, TokenType: "Bearer"}
	if g.Refresh != "" {
		c, err := p.speaks.config(ctx)
		if err != nil {
			return Person{}, g, err
		}
		token, err = c.TokenSource(p.withClient(ctx), &oauth2.Token{RefreshToken: g.Refresh}).Token()
		if err != nil {
			return Person{}, g, p.convertError(err, "does not stand by the sign-in any more")
		}
		g = p.grantOf(token)
	}
	now, err := p.readPerson(ctx, token, "")
	switch {
	case err != nil:
		return Person{}, g, err
	case now.Subject != was.Subject:
		return Person{}, g, p.badAnswer("speaks of another person than the one who signed in")
	}
	now.Session = was.Session
	return now, g, nil
}

// Check asks what can be asked without a person, and returns what an operator should know about the provider.
func (p *Provider) Check(ctx context.Context) (notes []string, err error) {
	return p.speaks.checkProvider(ctx)
}

// Logout reads the logout token that the provider posts when a person signs out there; unauthenticated for an invalid
// one.
func (p *Provider) Logout(ctx context.Context, token string) (Logout, error) {
	return p.speaks.logout(ctx, token)
}

// readPerson reads the person of a token, and checks that it can be recorded.
func (p *Provider) readPerson(ctx context.Context, t *oauth2.Token, nonce string) (Person, error) {
	who, err := p.speaks.who(ctx, t, nonce)
	if err != nil {
		return Person{}, err
	}
	who.Provider, who.Issuer = p.settings.Name, p.settings.Issuer
	return who, p.recordable(&who)
}

// withClient returns the context by which the libraries find the way out.
func (p *Provider) withClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, p.client)
}

func (p *Provider) grantOf(t *oauth2.Token) Grant {
	g := Grant{Access: t.AccessToken, Refresh: t.RefreshToken, Expires: t.Expiry}
	if t.ExpiresIn > 0 { // by our clock, which is not that of the library
		g.Expires = p.now().Add(time.Duration(t.ExpiresIn) * time.Second)
	}
	return g
}

// Kind is a provider's protocol.
type Kind string

// The kinds.
const (
	OpenID Kind = "oidc"
	GitHub Kind = "github" // OAuth, without ID tokens
)

// DefaultGroups is the claim that names a person's groups unless the operator names another one.
const DefaultGroups = "groups"

// GitHubIssuer is the address where people of GitHub sign in, unless the operator names a server of GitHub Enterprise.
const GitHubIssuer = "https://github.com"

// Settings is the operator's configuration of one provider.
type Settings struct {
	Name         string // in addresses, in the policy and before names on the record: a-z, 0-9 and hyphens
	Kind         Kind
	Issuer       string   // address, as the provider itself gives it; of GitHub that of its pages
	ClientID     string   // of the application that is registered there
	ClientSecret string   // "" for a public client, which has PKCE alone
	Text         string   // of the button
	Scopes       []string // to ask for; none: what Kind needs
	GroupsClaim  string   // "" for DefaultGroups
	Hosts        []string // origins that may be asked beside the issuer's, such as https://oauth2.example
	PlainHTTP    bool     // the provider may be asked by plain http on another machine
}

// Check says what is wrong with the settings; nil for nothing. It sends no request.
func (s Settings) Check() error {
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`).MatchString(s.Name):
		return fmt.Errorf("%.30q is not a valid provider name: a letter, then letters, digits and hyphens, 20 at most", s.Name)
	case s.Kind != OpenID && s.Kind != GitHub:
		return fmt.Errorf("the kind is %q or %q", OpenID, GitHub)
	case s.ClientID == "":
		return fmt.Errorf("the client id is missing")
	case s.Kind == GitHub && s.ClientSecret == "":
		return fmt.Errorf("GitHub needs a client secret")
	}
	for _, address := range append([]string{s.Issuer}, s.Hosts...) {
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
			u.Fragment != "":
			return fmt.Errorf("the issuer, and each host, is an address such as https://id.example")
		case !s.PlainHTTP && !transport.IsConfidential(u):
			return fmt.Errorf("%s is asked by plain http, so that anybody on the way could be anybody; use https", u.Redacted())
		}
	}
	return nil
}

// hosts returns the addresses that may be asked.
func (s Settings) hosts() (out []*url.URL) {
	for _, address := range append([]string{s.Issuer, s.api()}, s.Hosts...) {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			out = append(out, u)
		}
	}
	return out
}

// api returns the address of GitHub's API; "" for other kinds.
func (s Settings) api() string {
	switch {
	case s.Kind != GitHub:
		return ""
	case s.Issuer == GitHubIssuer:
		return "https://api.github.com"
	}
	return strings.TrimRight(s.Issuer, "/") + "/api/v3"
}

// Bounds of what is recorded of a person, in bytes, and of the number of their groups.
const (
	maxSubject = 255
	maxUser    = 100
	maxGroup   = 256
	maxGroups  = 1000
)

// badAnswer returns the fault for an unacceptable answer of the provider.
func (p *Provider) badAnswer(why string) *fault.Error {
	return fault.New(fault.Unauthenticated, "the provider %s %s", p.settings.Name, why)
}

// convertError converts an error of the provider: its refusal, which is reported as what, or a failure. Its own text
// may hold anything and is not passed on.
func (p *Provider) convertError(err error, what string) error {
	var answered *oauth2.RetrieveError
	var refused *transport.RefusedError
	var late net.Error
	switch name := p.settings.Name; {
	case errors.As(err, &answered) && answered.ErrorCode == "invalid_client":
		return fault.Wrap(err, fault.Misconfigured,
			"the provider %s does not take the client id and the secret of this server; the operator "+
				"corrects them", name)
	case errors.As(err, &answered) && (answered.ErrorCode == "" || answered.Response != nil &&
		answered.Response.StatusCode >= http.StatusInternalServerError):
		return fault.Wrap(err, fault.UpstreamError, "the provider %s answered with an error of its own; try again later",
			name)
	case errors.As(err, &answered):
		return fault.Wrap(err, fault.Unauthenticated, "the provider %s %s", name, what)
	case errors.As(err, &refused):
		return fault.Wrap(err, fault.UpstreamError,
			"the provider %s names an address that is not asked: %s; the operator may name its host in "+
				"CLAUDEOPS_SIGN_IN_%s_HOSTS", name, refused, VariablePart(name))
	case errors.Is(err, transport.ErrBodyTooLarge):
		return fault.Wrap(err, fault.UpstreamError, "the provider %s answered with more than %d bytes", name, maxAnswer)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return fault.Wrap(err, fault.Timeout, "the provider %s did not answer within %s; try again later", name, timeout)
	default:
		return fault.Wrap(err, fault.UpstreamError,
			"the provider %s cannot be asked, or its answer cannot be read; try again later", name)
	}
}

// VariablePart returns a provider's name as it stands in names of variables.
func VariablePart(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// recordable checks what is recorded of a person, and puts their groups in order.
func (p *Provider) recordable(who *Person) error {
	plain := func(s string, most int) bool {
		return len(s) <= most && s == strings.TrimSpace(s) && textscan.Clean(s, most) == s && !strings.ContainsAny(s,
			"\n\r\t")
	}
	switch {
	case who.Subject == "" || !plain(who.Subject, maxSubject):
		return p.badAnswer("gives the person a subject that cannot be recorded")
	case !plain(who.User, maxUser):
		return p.badAnswer(
			"gives the person a name with hidden characters, or one that is too long; a name has at most 100 bytes of visible characters")
	case len(who.Groups) > maxGroups:
		return p.badAnswer("names more than 1000 groups of the person; have it name those alone that the policy needs")
	case slices.ContainsFunc(who.Groups, func(g string) bool { return len(g) > maxGroup }):
		return p.badAnswer("names a group of more than 256 bytes")
	}
	slices.Sort(who.Groups)
	who.Groups = slices.Compact(who.Groups)
	return nil
}
