package fakegithub

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
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

// makeToken makes a token of GitHub's form.
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

// admit finds out whether a token is one of the app's, and refuses those that are worth nothing any more.
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

// as runs do under the host's lock, on behalf of who asks.
func (s *Server) as(a *exchange, do func()) {
	s.host.Locked(func() {
		s.apps.acting = a.by.grant
		defer func() { s.apps.acting = nil }()
		do()
	})
}

// foreign reports whether who asks is an app whose token is for another repository.
func (r *rights) foreign() bool {
	return r.at.s.apps.acting != nil && lower(r.at.s.apps.acting.Repo.String()) != lower(r.at.repo.Ref.String())
}

// barred tells why an app may not do something for which one of the permissions is needed: nil if it may, or if no app
// asks.
func (r *rights) barred(level string, permissions ...string) *refusal {
	token := r.at.s.apps.acting
	if token == nil || slices.ContainsFunc(permissions,
		func(name string) bool { return !r.foreign() && token.may(name, level) }) {
		return nil
	}
	return &refusal{http.StatusForbidden, "FORBIDDEN", "Resource not accessible by integration",
		strings.Join(permissions, "="+level+"; ") + "=" + level}
}

// gqlReads returns the refusal for a field that is read; it needs all of the permissions.
func (r *rights) gqlReads(permissions ...string) error {
	for _, name := range permissions {
		if no := r.barred("read", name); no != nil {
			return no.graphQL()
		}
	}
	return nil
}

// readNeeds returns the permission that reading a route needs, of the kind that GitHub's documentation of each
// operation names.
func readNeeds(route string) string {
	_, path, _ := strings.Cut(route, "/repos/{owner}/{repo}")
	for _, need := range []struct{ prefix, permission string }{
		{"/actions/permissions", "administration"}, {"/actions", "actions"},
		{"/branches/{branch}/protection", "administration"},
		{"/branches", "contents"}, {"/commits/{ref}/check-runs", "checks"}, {"/commits/{ref}/status", "statuses"},
		{"/contents", "contents"}, {"/git", "contents"}, {"/issues", "issues"}, {"/labels", "issues"},
		{"/pulls", "pull_requests"},
	} {
		if strings.HasPrefix(path, need.prefix) {
			return need.permission
		}
	}
	return "metadata"
}

// viewerPermission returns the permission of the token's owner; GitHub tells an app nothing.
func (r *rights) viewerPermission() any {
	switch {
	case r.at.s.apps.acting != nil:
		return nil
	case r.at.set.Token.Permission == "none":
		return "READ" // everybody reads what is public
	}
	return strings.ToUpper(r.at.set.Token.Permission)
}

// guarded returns a field that an app may read with the permissions alone.
func (r *rights) guarded(compute func(args) (any, error), permissions ...string) gql.Func {
	return func(in args) (any, error) {
		if err := r.gqlReads(permissions...); err != nil {
			return nil, err
		}
		return compute(in)
	}
}

// longestJWT is how long a signature may be valid from GitHub's point of view.
const longestJWT = 10 * time.Minute

// signed answers a request in the name of the app itself, if its signature holds.
func (i *appInstallation) signed(answer func(*exchange)) func(*exchange) {
	return func(a *exchange) {
		i.s.host.Locked(func() {
			status, wrong := i.checkJWT(a.r.Header.Get("Authorization"))
			if wrong != "" {
				a.fail(status, wrong)
				return
			}
			answer(a)
		})
	}
}

// checkJWT says what is wrong with a signature, in GitHub's words.
func (i *appInstallation) checkJWT(authorization string) (status int, wrong string) {
	const undecodable = "A JSON web token could not be decoded"
	scheme, token, _ := strings.Cut(authorization, " ")
	parts := strings.Split(token, ".")
	if lower(scheme) != "bearer" || len(parts) != 3 || i.app == nil {
		return http.StatusUnauthorized, undecodable
	}
	var header struct{ Alg, Typ string }
	var claims struct {
		IssuedAt int64  `json:"iat"`
		Expires  int64  `json:"exp"`
		Issuer   string `json:"iss"`
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decodePart(parts[0], &header) || !decodePart(parts[1], &claims) || header.Alg != "RS256" {
		return http.StatusUnauthorized, undecodable
	}
	now := i.app.now()
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	switch {
	case claims.Issuer != i.app.ID:
		return http.StatusNotFound, "Integration not found"
	case rsa.VerifyPKCS1v15(i.app.Key, crypto.SHA256, sum[:], signature) != nil:
		return http.StatusUnauthorized, undecodable
	case claims.IssuedAt > now.Unix():
		return http.StatusUnauthorized,
			"'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	case claims.Expires <= now.Unix():
		return http.StatusUnauthorized,
			"'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	case claims.Expires > now.Add(longestJWT).Unix():
		return http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future"
	}
	return 0, ""
}

func decodePart(part string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// signs reports whether a request is one that an app makes in its own name.
func (i *appInstallation) signs(a *exchange) bool {
	path := a.r.URL.Path
	return path == "/app" || strings.HasPrefix(path, "/app/") || strings.HasSuffix(path, "/installation")
}

// routes returns the routes that an app uses in its own name.
func (i *appInstallation) routes() map[string]func(*exchange) {
	return map[string]func(*exchange){
		"GET /app": i.signed(func(a *exchange) { a.reply(http.StatusOK, i.restApp()) }),
		"GET /repos/{owner}/{repo}/installation": i.signed(func(a *exchange) {
			i.s.rest.inRepo(a, func(p *place, a *exchange) { i.getInstallation(a, p.repo.Ref.Owner, i.app.sees(p.repo.Ref)) })
		}),
		"GET /orgs/{org}/installation": i.signed(func(a *exchange) {
			i.getInstallation(a, a.path["org"], lower(a.path["org"]) == organisation)
		}),
		"GET /users/{username}/installation": i.signed(func(a *exchange) {
			i.getInstallation(a, a.path["username"], lower(a.path["username"]) == owner)
		}),
		"POST /app/installations/{installation_id}/access_tokens": i.signed(i.postAccessToken),
		conversionRoute: i.postConversion,
	}
}

func (i *appInstallation) getInstallation(a *exchange, account string, found bool) {
	if !found || i.app.Uninstalled {
		a.notFound()
		return
	}
	a.reply(http.StatusOK, i.restInstallation(account))
}

// postAccessToken makes a token for the repositories and permissions that are asked for: all if none are named.
func (i *appInstallation) postAccessToken(a *exchange) {
	var in struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int             `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	switch {
	case !a.decode(&in):
		return
	case a.number("installation_id") != installationID || i.app.Uninstalled:
		a.notFound()
		return
	case i.app.Suspended:
		a.fail(http.StatusForbidden, "This installation has been suspended")
		return
	}
	if len(in.Repositories)+len(in.RepositoryIDs) != 1 || len(in.Permissions) == 0 {
		i.s.t.Errorf("the fake GitHub makes tokens for one repository and named permissions, not %s", a.body)
	}
	p := i.installedRepo(in.Repositories, in.RepositoryIDs)
	if p == nil {
		a.fail(http.StatusUnprocessableEntity,
			"There is at least one repository that does not exist or is not accessible to the parent installation.")
		return
	}
	for name, level := range in.Permissions {
		if !i.app.grants(name, level) {
			a.fail(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			return
		}
	}
	token := i.makeToken(p.repo.Ref, in.Permissions)
	a.reply(http.StatusCreated, object{
		"token": token.Token, "expires_at": stamp(token.expires), "permissions": token.Permissions,
		"repository_selection": "selected", "repositories": []any{p.rest().restRepo()},
	})
}

// installedRepo opens the repository that a token is asked for by its name, which is its present one, or its id; nil if
// the installation is not for it.
func (i *appInstallation) installedRepo(names []string, ids []int) *place {
	var repo *memhost.Repo
	for _, id := range ids {
		repo = i.s.repos.byID[id]
	}
	for _, name := range names {
		repo = i.s.host.Repo(gitprovider.RepoRef{Owner: owner, Name: name})
	}
	if repo == nil || !i.app.sees(repo.Ref) || i.s.repos.place(repo).deleted {
		return nil
	}
	return i.s.repos.place(repo)
}

func (i *appInstallation) restApp() object {
	return object{
		"id": appNumber(i.app.ID), "slug": i.app.Slug, "client_id": "Iv1.fake", "node_id": nodeID(kindUser, 0, i.app.Slug),
		"owner": i.s.restUser(owner), "name": i.app.Slug, "description": nil, "external_url": i.s.host.Web(),
		"html_url": i.s.host.Web() + "/apps/" + i.app.Slug, "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
		"permissions": i.app.Permissions, "events": []string{}, "installations_count": 1,
	}
}

func appNumber(id string) int {
	if n, err := strconv.Atoi(id); err == nil {
		return n
	}
	return 1
}

func (i *appInstallation) restInstallation(account string) object {
	selection, suspended := "all", any(nil)
	if i.app.Selected != nil {
		selection = "selected"
	}
	if i.app.Suspended {
		suspended = stamp(epoch())
	}
	permissions := map[string]string{"metadata": "read"}
	maps.Copy(permissions, i.app.Permissions)
	id := strconv.Itoa(installationID)
	return object{
		"id": installationID, "account": i.s.restUser(account), "repository_selection": selection,
		"app_id":   appNumber(i.app.ID),
		"app_slug": i.app.Slug, "target_id": userID(account), "target_type": "User", "permissions": permissions,
		"access_tokens_url": i.s.URL() + "/app/installations/" + id + "/access_tokens",
		"repositories_url":  i.s.URL() + "/installation/repositories",
		"html_url":          i.s.host.Web() + "/settings/installations/" + id, "events": []string{},
		"created_at": stamp(epoch()), "updated_at": stamp(epoch()), "single_file_name": nil,
		"suspended_at": suspended, "suspended_by": nil,
	}
}
