package resilience

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"sync"
	"testing"

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

// constant is a secret that stays.
type constant string

func (c constant) Value() string  { return string(c) }
func (c constant) Reread() string { return string(c) }

// withApp are the kinds of forge, and GitHub with an app in place of a token: its requests for installations and tokens
// are among those that go wrong.
func withApp() []kind {
	k := kinds()[0]
	k.label = "github app"
	k.start = func(t testing.TB) forge {
		s := fakegithub.New(t)
		s.SetApp(fakegithub.App{ID: "12345", Slug: "claude-ops", Key: &appKey().PublicKey, Permissions: map[string]string{
			"contents": "write", "pull_requests": "write", "checks": "read", "statuses": "read",
		}})
		return s
	}
	k.app = func(t testing.TB, f forge, o transport.Options) *githubapp.App {
		text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(appKey())})
		o.Variables.Token, o.Credential = "GITHUB_APP_PRIVATE_KEY", githubapp.NewSigner("12345", constant(text), nil)
		client, err := transport.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdleConnections)
		return githubapp.New(githubapp.Options{API: base(t, f), Client: client})
	}
	return append(kinds(), k)
}

// title is what tests call the kind.
func (k kind) title() string {
	if k.label != "" {
		return k.label
	}
	return k.name
}

// tokens are all those that requests to the forge have carried.
func (w *world) tokens() []string {
	out := []string{w.forge.Token()}
	if s, is := w.forge.(*fakegithub.Server); is {
		for _, token := range s.AppTokens() {
			out = append(out, token.Token)
		}
	}
	return out
}
