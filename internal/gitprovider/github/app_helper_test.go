package github_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
)

// appKey is the private key of the tests' app, made once.
var appKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func pemOf(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func pkcs8Of(t *testing.T, key any) string {
	t.Helper()
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func ellipticPEM(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pkcs8Of(t, key)
}

// given is a secret that a test may replace.
type given struct{ value string }

func (g *given) Value() string  { return g.value }
func (g *given) Reread() string { return g.value }

// appPermissions are those that the documentation asks for.
func appPermissions() map[string]string {
	return map[string]string{
		"contents": "write", "pull_requests": "write", "actions": "read", "checks": "read", "statuses": "read",
	}
}

// appSetup is a provider that acts as a GitHub App on a fake GitHub.
type appSetup struct {
	*github.Provider
	app      *githubapp.App
	key      *given
	learnt   map[string]bool // tokens that are redacted
	now      time.Time
	requests *transport.Transport
}

func (a *appSetup) clock() time.Time { return a.now }

// setupApp makes the server know the app, and a provider that acts as it.
func setupApp(t testing.TB, s *fakegithub.Server, change ...func(*github.Options)) *appSetup {
	t.Helper()
	base, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	a := &appSetup{key: &given{pemOf(appKey())}, learnt: map[string]bool{}, now: time.Now()}
	s.SetApp(fakegithub.App{
		ID: "12345", Slug: "claude-ops", Key: &appKey().PublicKey, Permissions: appPermissions(), Now: a.clock,
	})
	noWait := func(context.Context, time.Duration) {}
	client := func(tokenName string, credential transport.Credential) *transport.Transport {
		out, err := transport.New(transport.Options{
			Name: github.Name, Variables: transport.Variables{Token: tokenName, Address: "GITHUB_API_URL"}, Base: base,
			Clock: transport.Clock{Now: a.clock, Sleep: noWait}, Credential: credential,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(out.CloseIdleConnections)
		return out
	}
	var mu sync.Mutex
	learn := func(token string, known bool) {
		mu.Lock()
		defer mu.Unlock()
		a.learnt[token] = known
	}
	a.app = githubapp.New(githubapp.Options{
		API: base, Client: client("GITHUB_APP_PRIVATE_KEY", githubapp.NewSigner("12345", a.key, a.clock)), Now: a.clock,
		Learn: func(token string) func() { learn(token, true); return func() { learn(token, false) } },
	})
	a.requests = client("the token of the GitHub App", a.app)
	opts := github.Options{API: base, Client: a.requests, App: a.app, Sleep: noWait}
	for _, c := range change {
		c(&opts)
	}
	a.Provider = github.New(opts)
	return a
}
