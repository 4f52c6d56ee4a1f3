package gitea

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// The scopes that a proposal needs: the first one for branch, commit and pull request, the second for its labels.
const (
	scopeRepository = "write:repository"
	scopeIssue      = "write:issue"
)

// examineScopes finds out what the token lacks, whatever its user may do. The server does not tell a token its scopes, but
// it looks at them before anything else, and names them where one is missing. So two requests are made that need the scopes and
// could not do anything if they had them: to ask nobody for a review, and to add no label, each of number 0, which is neither a
// pull request nor an issue. With the scope they are a 404.
func (p *Provider) examineScopes(ctx context.Context, repo gitprovider.RepoRef, access *gitprovider.Access) {
	var forRepository, forIssues error
	_ = together( // neither returns an error
		func() error {
			forRepository = p.post(ctx, p.repoURL(repo, "pulls", "0", "requested_reviewers"), map[string][]string{"reviewers": {}}, nil)
			return nil
		},
		func() error {
			forIssues = p.post(ctx, p.repoURL(repo, "issues", "0", "labels"), map[string][]string{"labels": {}}, nil)
			return nil
		},
	)
	if lacksScope(forRepository) {
		no := false
		access.Lacks, access.CanPush = []string{scopeRepository}, &no
	}
	if lacksScope(forIssues) {
		access.LacksForLabels = []string{scopeIssue}
	}
	for _, err := range []error{forRepository, forIssues} {
		if told := toldScopes(err); told != nil {
			access.Scopes = told
		}
	}
}

// lacksScope reports whether the token was refused for a scope that it lacks.
func lacksScope(err error) bool {
	return statusIs(err, http.StatusForbidden) && strings.Contains(refusalOf(err).message, scopePhrase)
}

// toldScopes are the token's scopes as a refusal tells them; nil if it does not. Forgejo and older versions do not.
func toldScopes(err error) []string {
	r := refusalOf(err)
	if r == nil || !lacksScope(err) {
		return nil
	}
	m := regexp.MustCompile(`token scope=([a-z:,-]+)`).FindStringSubmatch(r.message)
	if m == nil {
		return nil
	}
	scopes := strings.Split(m[1], ",")
	slices.Sort(scopes)
	return scopes
}

func refusalOf(err error) *refusal {
	var r *refusal
	errors.As(err, &r)
	return r
}
