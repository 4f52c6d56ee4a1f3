package fakegithub

import (
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// organisation is the one in which the owner of Token may make repositories.
const organisation = "octo-org"

// Organisation returns the name of the organisation in which the owner of Token may make repositories.
func (s *Server) Organisation() string { return organisation }

// Viewer returns the login of the owner of Token.
func (s *Server) Viewer() string { return viewer }

// TokenOf makes an account, if there is none of that login, and returns a token of its. With it one may accept
// invitations to repositories and review pull requests; any other request fails the test.
func (s *Server) TokenOf(login string) string {
	token := "ghp_fakefake" + login
	s.host.Locked(func() { s.accounts.tokens[token] = login })
	return token
}

// named returns the spelling of a login that an account has, or "".
func (c *accounts) named(login string) string {
	for _, have := range c.tokens {
		if lower(have) == lower(login) {
			return have
		}
	}
	return ""
}

// admit finds out who asks. It refuses who has no token, or a wrong one.
func (c *accounts) admit(a *exchange) bool {
	scheme, token, _ := strings.Cut(a.r.Header.Get("Authorization"), " ")
	if c.s.apps.signs(a) {
		a.by.who = viewer // the signature is checked by the route
		return true
	}
	if known, admitted := c.s.apps.admit(a, token); known {
		a.header.Del("X-OAuth-Scopes") // an app's token has none
		return admitted
	}
	c.s.host.Locked(func() { a.by.who = c.tokens[token] })
	switch {
	case scheme == "":
		a.fail(http.StatusUnauthorized, "Requires authentication")
		return false
	case (lower(scheme) != "bearer" && lower(scheme) != "token") || a.by.who == "":
		a.fail(http.StatusUnauthorized, "Bad credentials")
		return false
	}
	return true
}

// takenFromAll reports whether others than the owner of Token may make a request for a route.
func takenFromAll(route string) bool {
	return slices.Contains([]string{
		"GET /user", "PATCH /user/repository_invitations/{invitation_id}",
		"POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews",
	}, route)
}

// permissions returns the roles that somebody may have in a repository, lowest first.
func permissions() []string { return []string{"none", "read", "triage", "write", "maintain", "admin"} }

func atLeast(have, wanted string) bool {
	return slices.Index(permissions(), have) >= slices.Index(permissions(), wanted)
}

// allows reports whether somebody's permission is at least as high as the one named.
func (r *rights) allows(who, permission string) bool { return atLeast(r.roleOf(who), permission) }

// roleOf returns somebody's role in the repository.
func (r *rights) roleOf(who string) string {
	role, given := r.at.set.People.Roles[who]
	switch {
	case who == viewer:
		return r.at.set.Token.Permission
	case who == r.at.repo.Ref.Owner:
		return "admin"
	case given:
		return role
	case slices.Contains(r.at.set.People.Collaborators, who):
		return "write"
	case r.at.set.Private:
		return "none"
	}
	return "read"
}

// invitation asks somebody to become a collaborator.
type invitation struct {
	id      int
	repo    *memhost.Repo
	invitee string
	role    string // as REST names it for invitations
}
