package fakegithub

import (
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

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
