package fakegithub

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// App is a GitHub App that the server knows, and its installation for the owner of all repositories.
type App struct {
	ID          string // that requests are signed for
	Slug        string
	Key         *rsa.PublicKey
	Permissions map[string]string     // that the installation grants, besides metadata
	Selected    []gitprovider.RepoRef // that the installation is for; nil: all
	Uninstalled bool                  // there is no installation
	Suspended   bool                  // the owner has suspended it
	Lifetime    time.Duration         // of tokens; 0: an hour
	Now         func() time.Time      // nil: time.Now
	NotYet      []int                 // 401 and 403 that each new token is answered first, as long as GitHub spreads it
}

// AppToken is a token that the server made for an installation.
type AppToken struct {
	Token       string
	Repo        gitprovider.RepoRef
	Permissions map[string]string
	expires     time.Time
	notYet      []int
}

// installationID is the number of the one installation.
const installationID = 4711

// SetApp makes the server know an app.
func (s *Server) SetApp(app App) {
	s.host.Locked(func() {
		app.Permissions = maps.Clone(app.Permissions)
		s.apps.app = &app
	})
}

// ConfigureApp hands the app to change. Tokens that it has already keep what they may do, unless the installation is
// suspended or gone.
func (s *Server) ConfigureApp(change func(*App)) { s.host.Locked(func() { change(s.apps.app) }) }

// AppTokens returns the tokens that were made so far, the oldest first.
func (s *Server) AppTokens() []AppToken {
	var out []AppToken
	s.host.Locked(func() {
		for _, token := range s.apps.appTokens {
			out = append(out, *token)
		}
	})
	return out
}

// RevokeAppTokens ends all tokens that were made so far.
func (s *Server) RevokeAppTokens() {
	s.host.Locked(func() {
		for _, token := range s.apps.appTokens {
			token.expires = time.Time{}
		}
	})
}

func (a *App) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

// sees reports whether the installation is for a repository.
func (a *App) sees(ref gitprovider.RepoRef) bool {
	return a.Selected == nil || slices.ContainsFunc(a.Selected, func(have gitprovider.RepoRef) bool {
		return lower(have.String()) == lower(ref.String())
	})
}

// grants reports whether the installation grants a permission.
func (a *App) grants(name, level string) bool {
	return name == "metadata" && level == "read" || covers(a.Permissions[name], level)
}

// covers reports whether one level of a permission includes another.
func covers(have, wanted string) bool {
	levels := []string{"", "read", "write", "admin"}
	return slices.Index(levels, have) >= slices.Index(levels, wanted)
}

// may reports whether a token allows something: pull requests' permission does for what they have in common with
// issues.
func (t *AppToken) may(name, level string) bool {
	switch {
	case name == "metadata":
		return true
	case name == "issues" && covers(t.Permissions["pull_requests"], level):
		return true
	}
	return covers(t.Permissions[name], level)
}

// makeAppToken makes a token of GitHub's form.
func (i *appInstallation) makeToken(ref gitprovider.RepoRef, permissions map[string]string) *AppToken {
	lifetime := i.app.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "token %d of %s", len(i.appTokens), ref))
	token := &AppToken{
		Token: "ghs_" + hex.EncodeToString(sum[:])[:36], Repo: ref, Permissions: permissions,
		expires: i.app.now().Add(lifetime).Truncate(time.Second), notYet: i.app.NotYet,
	}
	i.appTokens = append(i.appTokens, token)
	return token
}

// admitApp finds out whether a token is one of the app's, and refuses those that are worth nothing any more.
func (i *appInstallation) admit(a *exchange, token string) (known, admitted bool) {
	i.s.host.Locked(func() {
		at := slices.IndexFunc(i.appTokens, func(t *AppToken) bool { return t.Token == token })
		if at < 0 {
			return
		}
		known = true
		if token := i.appTokens[at]; len(token.notYet) > 0 {
			words := map[int]string{401: "Bad credentials", 403: "Resource not accessible by integration"}
			a.fail(token.notYet[0], words[token.notYet[0]])
			token.notYet = token.notYet[1:]
			return
		}
		switch {
		case i.app.Uninstalled || !i.app.now().Before(i.appTokens[at].expires):
			a.fail(http.StatusUnauthorized, "Bad credentials")
		case i.app.Suspended:
			a.fail(http.StatusForbidden, "This installation has been suspended")
		default:
			a.by.who, a.by.grant, admitted = viewer, i.appTokens[at], true
		}
	})
	return known, admitted
}
