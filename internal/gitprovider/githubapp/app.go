// Package githubapp gets tokens in the name of a GitHub App, for package github: a transport.Credential whose tokens
// are made to measure.
//
// A token is for the one repository that a request is about, and may read or write as the request does (see Use of
// package transport). GitHub makes it for an hour; it is kept in memory, used for requests of the same kind, and
// replaced some minutes before it ends. Who asks for one while it is being made waits for that one.
//
// What GitHub is asked in the app's own name (which installation, a token of it) is signed with the app's private key:
// a JWT of ten minutes. Both requests are made over a transport of their own, whose credential is a Signer; it has the
// same origin as that of package github, so that neither the signature nor a token goes to another host.
package githubapp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	tokens  map[tokenKey]*slot
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
		tokens: map[tokenKey]*slot{}, installations: forge.NewLRU[string, cachedInstallation](maxInstallations, nil),
	}
}

// tokenKey says which requests share a token.
type tokenKey struct {
	repo    string // in lower case, as GitHub compares names
	write   bool
	members bool
}

func keyOf(use transport.Use) tokenKey {
	return tokenKey{strings.ToLower(use.Owner + "/" + use.Repo), use.Write, use.Members}
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

func (a *App) slot(k tokenKey) *slot {
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

// issuedToken is a token that GitHub made.
type issuedToken struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

// obtain has a token made. If GitHub refuses it for what an installation seen some time ago does not allow any more,
// the installation is looked up anew, once.
func (a *App) obtain(ctx context.Context, use transport.Use) (issuedToken, error) {
	for fresh := false; ; fresh = true {
		in, cached, err := a.installation(ctx, use.Owner, use.Repo, fresh)
		if err != nil {
			return issuedToken{}, err
		}
		out, outdated, err := a.requestToken(ctx, in, use)
		if outdated && cached && !fresh {
			continue
		}
		return out, err
	}
}

// requestToken asks for a token of an installation. outdated says that the error may come from the installation being
// another now.
func (a *App) requestToken(ctx context.Context, in installation, use transport.Use) (out issuedToken, outdated bool,
	err error) {
	ask, err := tokenPermissions(in.Permissions, use)
	if err != nil {
		return out, true, err
	}
	u := transport.URL(a.api, "app", "installations", strconv.FormatInt(in.ID, 10), "access_tokens")
	body := map[string]any{"repositories": []string{use.Repo}, "permissions": ask}
	if in.repository != 0 {
		body = map[string]any{"repository_ids": []int64{in.repository}, "permissions": ask}
	}
	status, said, err := a.sendAsApp(ctx, http.MethodPost, u, body, &out)
	switch {
	case err != nil:
		return issuedToken{}, false, err
	case status == http.StatusNotFound:
		return issuedToken{}, true, fault.New(fault.NotFound,
			"the GitHub App is not installed for %s any more; install it there, with access "+
				"to %s", use.Owner, use.Repo)
	case status == http.StatusForbidden && forge.Mentions(said, "suspended"):
		return issuedToken{}, true, suspended(use.Owner)
	case status == http.StatusForbidden:
		return issuedToken{}, true, fault.New(fault.ProviderDisabled,
			"GitHub makes no token for the installation of the GitHub App for %s (403): %s; look at the installation's "+
				"settings, and at the owner's rules for apps", use.Owner, fault.Said(a.client.Scrub(said)))
	case status == http.StatusUnprocessableEntity:
		return issuedToken{}, true, fault.New(fault.ProviderDisabled,
			"GitHub makes no token for %s/%s: its installation of the GitHub App "+
				"leaves the repository out, or does not grant %v any more; look at the installation's settings", use.Owner,
			use.Repo,
			ask.list())
	case out.Token == "" || out.ExpiresAt.IsZero():
		return issuedToken{}, false, notGitHub(nil)
	}
	return out, false, nil
}

// permissions maps GitHub's name of a permission to "read", "write" or "admin", as an installation grants it or a token
// has it.
type permissions map[string]string

// required returns the permissions that a request needs, and optional those that it makes use of if the installation
// grants them: what CI said, and whether it is set up. Labels, reviewers and assignees of pull requests need no
// permission of their own.
func required(use transport.Use) permissions {
	out := permissions{"contents": "read", "pull_requests": "read"}
	if use.Write {
		out = permissions{"contents": "write", "pull_requests": "write"}
	}
	if use.Members {
		out["members"] = "read" // without it GitHub does not find a team
	}
	return out
}

func optional(use transport.Use) []string {
	if use.Write {
		return nil
	}
	return []string{"actions", "checks", "statuses"}
}

// tokenPermissions selects the permissions to request for a token from those that the installation grants. GitHub
// refuses the whole token for one permission that is not granted, so a missing one is reported here instead:
// provider_disabled.
func tokenPermissions(granted permissions, use transport.Use) (permissions, error) {
	out := permissions{"metadata": "read"}
	var lacks []string
	for name, level := range required(use) {
		if !granted.covers(name, level) {
			lacks = append(lacks, permissionLabel(name, level))
		}
		out[name] = level
	}
	for _, name := range optional(use) {
		if granted.covers(name, "read") {
			out[name] = "read"
		}
	}
	if len(lacks) > 0 {
		slices.Sort(lacks)
		return nil, fault.New(fault.ProviderDisabled,
			"the installation of the GitHub App for %s lacks the permission %s; add it in the "+
				"app's settings, and have the owner accept it in the installation's", use.Owner, strings.Join(lacks, " and "))
	}
	return out, nil
}

func (p permissions) covers(name, level string) bool {
	levels := []string{"", "read", "write", "admin"}
	return slices.Index(levels, p[name]) >= slices.Index(levels, level)
}

// permissionLabel returns a permission as GitHub's pages name it: "Pull requests: read and write".
func permissionLabel(name, level string) string {
	words := strings.ReplaceAll(name, "_", " ")
	if level == "write" {
		level = "read and write"
	}
	return fmt.Sprintf("%q", strings.ToUpper(words[:1])+words[1:]+": "+level)
}

// list gives the permissions as "name: level", sorted.
func (p permissions) list() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		out = append(out, name+": "+p[name])
	}
	return out
}
