package identity

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/base/weborigin"
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
	// check asks what can be asked without a person, and returns what to know about the provider.
	check(ctx context.Context) (notes []string, err error)
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
			if weborigin.Same(u, host) {
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
	token, err := c.Exchange(p.with(ctx), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, Grant{}, p.failed(err,
			"did not take the code: it is used up, too old, or was not given to this server")
	}
	who, err := p.person(ctx, token, f.Nonce)
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
		token, err = c.TokenSource(p.with(ctx), &oauth2.Token{RefreshToken: g.Refresh}).Token()
		if err != nil {
			return Person{}, g, p.failed(err, "does not stand by the sign-in any more")
		}
		g = p.grantOf(token)
	}
	now, err := p.person(ctx, token, "")
	switch {
	case err != nil:
		return Person{}, g, err
	case now.Subject != was.Subject:
		return Person{}, g, p.refuse("speaks of another person than the one who signed in")
	}
	now.Session = was.Session
	return now, g, nil
}

// Check asks what can be asked without a person, and returns what an operator should know about the provider.
func (p *Provider) Check(ctx context.Context) (notes []string, err error) { return p.speaks.check(ctx) }

// Logout reads the logout token that the provider posts when a person signs out there; unauthenticated for an invalid
// one.
func (p *Provider) Logout(ctx context.Context, token string) (Logout, error) {
	return p.speaks.logout(ctx, token)
}

// person reads the person of a token, and checks that it can be recorded.
func (p *Provider) person(ctx context.Context, t *oauth2.Token, nonce string) (Person, error) {
	who, err := p.speaks.who(ctx, t, nonce)
	if err != nil {
		return Person{}, err
	}
	who.Provider, who.Issuer = p.settings.Name, p.settings.Issuer
	return who, p.recordable(&who)
}

// with returns the context by which the libraries find the way out.
func (p *Provider) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, p.client)
}

func (p *Provider) grantOf(t *oauth2.Token) Grant {
	g := Grant{Access: t.AccessToken, Refresh: t.RefreshToken, Expires: t.Expiry}
	if t.ExpiresIn > 0 { // by our clock, which is not that of the library
		g.Expires = p.now().Add(time.Duration(t.ExpiresIn) * time.Second)
	}
	return g
}
