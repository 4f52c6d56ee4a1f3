package fakegithub

import (
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
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

// refusal says why GitHub does not do what it was asked, in the terms of both APIs.
type refusal struct {
	status  int    // of REST
	typ     string // of GraphQL
	message string
	accepts string // the permission that would do, for X-Accepted-GitHub-Permissions
}

func (r *refusal) graphQL() *gql.Error { return &gql.Error{Type: r.typ, Message: r.message} }

func (r *refusal) rest(a *exchange) {
	if r.accepts != "" {
		a.header.Set("X-Accepted-GitHub-Permissions", r.accepts)
		a.header.Set("X-Accepted-OAuth-Scopes", "repo")
	}
	a.fail(r.status, r.message)
}

// refused returns the refusal for every request of the token about the repository, usually nil.
func (r *rights) refused() *refusal {
	if r.at.set.Token.Refusal == "" {
		return nil
	}
	return &refusal{http.StatusForbidden, "FORBIDDEN", r.at.set.Token.Refusal, ""}
}

// writes tells why somebody may not write: nil if they may. what is the fine-grained permission that is needed, such as
// "contents", and permission the role.
func (r *rights) writes(who, what, permission string) *refusal {
	if r.at.s.apps.acting != nil {
		if no := r.barred("write", what); no != nil {
			return no
		}
		permission = "none" // an app has no role
	}
	switch {
	case who == viewer && (r.at.set.Token.MissingScopes || slices.Contains(r.at.set.Token.NotGranted, what)),
		!r.allows(who, permission):
		return &refusal{http.StatusForbidden, "FORBIDDEN", "Resource not accessible by personal access token",
			what + "=write"}
	case r.at.repo.Archived:
		return &refusal{http.StatusForbidden, "UNPROCESSABLE", "Repository was archived so is read-only.", ""}
	}
	return nil
}

// seesTeams reports whether the token may read the organisation's members.
func (r *rights) seesTeams() bool {
	if token := r.at.s.apps.acting; token != nil {
		return token.may("members", "read")
	}
	return !slices.Contains(r.at.set.Token.NotGranted, "members")
}

// mayWrite is writes for a REST handler: it sets the refusal, if there is one.
func (r *rights) mayWrite(a *exchange, what, permission string) bool {
	if no := r.writes(a.by.who, what, permission); no != nil {
		no.rest(a)
		return false
	}
	return true
}

// hindered explains why a branch may not be created, moved or deleted: nil if it may.
func (r *rights) hindered(branch, action string) *refusal {
	if !r.at.set.protects(branch) {
		return nil
	}
	reason := "Changes must be made through a pull request."
	switch action {
	case "create":
		reason = "Cannot create ref due to creations being restricted."
	case "delete":
		reason = "Cannot delete this branch"
	}
	return &refusal{http.StatusUnprocessableEntity, "UNPROCESSABLE", "Repository rule violations found\n\n" + reason +
		"\n\n", ""}
}
