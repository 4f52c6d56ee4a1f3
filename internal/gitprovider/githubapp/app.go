package githubapp

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Options are the settings of an App. API and Client are required.
type Options struct {
	// API is the root of the REST API, as for package github.
	API *url.URL
	// Client carries requests in the name of the app: its credential is a Signer.
	Client *transport.Transport
	// Learn registers each new token for redaction before it is used, and returns a function that is called once the token
	// is worthless. nil: tokens are not registered.
	Learn func(token string) (forget func())
	Now   func() time.Time // nil means time.Now
}

// App provides the tokens of a GitHub App's installations. It is safe for concurrent use and sends no request before a
// token is needed.
type App struct {
	api    *url.URL
	client *transport.Transport
	learn  func(token string) (forget func())
	now    func() time.Time

	installations *forge.LRU[string, cachedInstallation] // by repository

	mu      sync.Mutex
	tokens  map[key]*slot
	retired []retired
}

// retired is a token that is not used any more.
type retired struct {
	until  time.Time // it is redacted
	forget func()
}

var _ transport.Credential = (*App)(nil)

// maxInstallations bounds the repositories whose installation is remembered.
const maxInstallations = 512

// New makes an App.
func New(o Options) *App {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Learn == nil {
		o.Learn = func(string) func() { return func() {} }
	}
	return &App{
		api: o.API, client: o.Client, learn: o.Learn, now: o.Now,
		tokens: map[key]*slot{}, installations: forge.NewLRU[string, cachedInstallation](maxInstallations, nil),
	}
}

// key says which requests share a token.
type key struct {
	repo    string // in lower case, as GitHub compares names
	write   bool
	members bool
}

func keyOf(use transport.Use) key {
	return key{strings.ToLower(use.Owner + "/" + use.Repo), use.Write, use.Members}
}

// slot is the place of one token. Who holds turn may ask for another.
type slot struct {
	turn chan struct{}

	// App.mu guards what follows.
	token   string
	made    time.Time
	expires time.Time
	forget  func()
}

// newFor is how long GitHub may not yet recognise a new token (401), or its permissions (403).
const newFor = 6 * time.Second

// IsNew reports whether the token for a use was made so lately that GitHub may not know it yet.
func (a *App) IsNew(use transport.Use) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.tokens[keyOf(use)]
	return s != nil && a.isNew(s)
}

func (a *App) isNew(s *slot) bool { return s.token != "" && a.now().Sub(s.made) < newFor }

// renewBefore is how long before its expiry a token is replaced: longer than a request with all its repetitions takes,
// and than two clocks differ.
const renewBefore = 5 * time.Minute

// forgetAfter is how long after its expiry a token is still redacted.
const forgetAfter = time.Hour

// Token implements transport.Credential. not_found if the app is not installed where it would see the repository;
// provider_disabled if the installation is suspended or lacks a permission, or the key is not the app's.
func (a *App) Token(ctx context.Context, use transport.Use) (string, error) {
	if use.Owner == "" || use.Repo == "" {
		return "", fault.New(fault.Internal, "a GitHub App has tokens for single repositories, and the request names none")
	}
	s := a.slot(keyOf(use))
	if token := a.current(s); token != "" {
		return token, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return "", a.client.Failure(context.Cause(ctx))
	}
	if token := a.current(s); token != "" { // somebody else got it meanwhile
		return token, nil
	}
	made, err := a.obtain(ctx, use)
	if err != nil {
		return "", err
	}
	forget := a.learn(made.Token)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.retire(s)
	s.token, s.made, s.expires, s.forget = made.Token, a.now(), made.ExpiresAt, forget
	a.sweep()
	return s.token, nil
}

// retire removes the token from a slot. It may be in use by pending requests, so it is still redacted for some time.
func (a *App) retire(s *slot) {
	if s.token != "" {
		a.retired = append(a.retired, retired{until: s.expires.Add(forgetAfter), forget: s.forget})
	}
	s.token = ""
}

// sweep forgets what has ended.
func (a *App) sweep() {
	now := a.now()
	for k, s := range a.tokens {
		if s.token != "" && s.expires.Before(now) && len(s.turn) == 0 {
			a.retire(s)
			delete(a.tokens, k)
		}
	}
	a.retired = slices.DeleteFunc(a.retired, func(r retired) bool {
		if r.until.Before(now) {
			r.forget()
			return true
		}
		return false
	})
}

// Refused implements transport.Credential: the token is not used again, unless it is new. The installation is looked up
// anew, so that a change (suspended, removed, fewer permissions) is reported.
func (a *App) Refused(use transport.Use, token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.tokens[keyOf(use)]
	if s == nil {
		return true
	}
	if s.token == token && a.isNew(s) {
		return false
	}
	if s.token == token {
		a.installations.Take(keyOf(use).repo)
		s.expires = a.now()
	}
	return true
}

func (a *App) slot(k key) *slot {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.tokens[k]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		a.tokens[k] = s
	}
	return s
}

// current returns the token of a slot if it lasts long enough, else "".
func (a *App) current(s *slot) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.token == "" || !a.now().Add(renewBefore).Before(s.expires) {
		return ""
	}
	return s.token
}
