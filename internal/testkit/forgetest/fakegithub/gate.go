package fakegithub

import (
	"net/http"
	"slices"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

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
