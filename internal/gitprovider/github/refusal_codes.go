package github

import (
	"net/http"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// fromStatus translates a REST refusal. Its codes are definite: none says that GitHub may have acted.
func (r refusals) fromStatus(status int, said string, n need, header http.Header) *fault.Error {
	if f := r.fromWords(said, n); f != nil {
		return f
	}
	switch status {
	case http.StatusForbidden:
		return r.forbidden(said, n, header)
	case http.StatusNotFound:
		return r.notFound()
	case http.StatusConflict:
		return fault.New(fault.Conflict, "GitHub could not do it in the repository's present state: %s; look again",
			fault.Said(said))
	case http.StatusGone:
		return fault.New(fault.RepoNotAllowed, "the repository has switched this off: %s", fault.Said(said))
	case http.StatusUnavailableForLegalReasons:
		return fault.New(fault.RepoNotAllowed, "GitHub has blocked access to the repository: %s", fault.Said(said))
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return fault.New(fault.InvalidArgument, "GitHub did not take the request: %s", fault.Said(said))
	}
	return fault.New(fault.ProviderDisabled,
		"the answer %d is none that GitHub gives here: %s; check that GITHUB_API_URL is the root of its API", status,
		fault.Said(said))
}

// notFound cannot tell a repository that does not exist from one that the token may not see: GitHub does not.
func (r refusals) notFound() *fault.Error {
	return fault.New(fault.NotFound, "GitHub has no such repository, or %s may not see it; check owner and name, and the "+
		"repositories that it is for", r.token)
}

// pullMissing names the pull request in a not_found: which of repository and number is missing, REST does not tell.
func (r refusals) pullMissing(err error, repo gitprovider.RepoRef, number int) error {
	if no := refused(err); no != nil && no.fault.Code == fault.NotFound {
		return fault.New(fault.NotFound, "GitHub has no pull request %d in %s, or %s may not see it", number, repo, r.token)
	}
	return err
}

// fromWords knows refusals whose status or type says less than their words, or nil. Every phrase has a space: names of
// repositories and branches, which GitHub quotes, have none.
func (r refusals) fromWords(said string, n need) *fault.Error {
	switch {
	case forge.Mentions(said, "was archived so is read-only", "repository is archived"):
		return fault.New(fault.RepoNotAllowed, "the repository is archived, so it takes no changes; have it unarchived first")
	case forge.Mentions(said, "installation has been suspended"):
		return fault.New(fault.ProviderDisabled,
			"the installation of the GitHub App is suspended; have the owner end that in the "+
				"installation's settings")
	case forge.Mentions(said, "cannot contain secrets", "secret detected in content", "push protection"):
		return fault.New(fault.ContentDenied,
			"GitHub's push protection found a secret in what was to be written: %s; take it out of the files. If it is none, "+
				"somebody who may bypass the protection has to say so at GitHub", fault.Said(said))
	case forge.Mentions(said, "saml enforcement", "saml sso", "single sign-on"):
		return fault.New(fault.ProviderDisabled,
			"the organisation asks for single sign-on; authorise %s for it in its settings",
			r.token)
	case forge.Mentions(said, "rule violations", "protected branch", "protected ref", "is protected",
		"creations being restricted",
		"not authorized to push", "ref creation restricted"):
		return fault.New(fault.RepoNotAllowed,
			"a rule of the repository forbids it: %s; have the branches %s exempted from the "+
				"rule", fault.Said(said), gitprovider.BranchPrefix+"**")
	case forge.Mentions(said, "repository access blocked"):
		return fault.New(fault.RepoNotAllowed,
			"GitHub has blocked access to the repository, for everybody; its owner has to ask GitHub why")
	case forge.Mentions(said, "ip allow list"):
		return fault.New(fault.ProviderDisabled, "the organisation lets in certain addresses only, not this server's: "+
			"%s; have it added to the organisation's IP allow list", fault.Said(said))
	case forge.Mentions(said, "token's lifetime"):
		return fault.New(fault.ProviderDisabled, "%s lasts longer than the organisation allows: %s; make one that expires "+
			"sooner", r.token, fault.Said(said))
	case forge.Mentions(said, "forbids access via a personal access token (classic)",
		"personal access tokens (classic) are forbidden"):
		return fault.New(fault.ProviderDisabled, "the organisation takes no classic tokens: %s; use a fine-grained one, "+
			"or a GitHub App", fault.Said(said))
	case forge.Mentions(said, "forbids access via a fine-grained personal access token"):
		return fault.New(fault.ProviderDisabled, "the organisation takes no fine-grained tokens: %s; use a GitHub App, "+
			"or have the organisation allow them", fault.Said(said))
	case forge.Mentions(said, "enterprise managed user"):
		return fault.New(fault.ProviderDisabled, "%s is a managed user's, who may not reach repositories outside of their "+
			"enterprise: %s; use the token of another account", r.token, fault.Said(said))
	case forge.Mentions(said, "submitted too quickly", "secondary rate limit"):
		return rateLimited(secondaryWait)
	case forge.Mentions(said, "resource not accessible by", "must have push access", "must have admin rights",
		"has not been granted the required scopes", "does not have the correct permissions"):
		return r.missingPermission(n, said)
	}
	return nil
}

// forbidden converts a 403. The headers name a classic token's scopes, and the permissions that a fine-grained one
// lacks.
func (r refusals) forbidden(said string, n need, header http.Header) *fault.Error {
	if accepted := header.Get("X-Accepted-GitHub-Permissions"); accepted != "" {
		return r.missingPermission(need(forge.Clean(accepted)), said)
	}
	accepted, have := header.Get("X-Accepted-OAuth-Scopes"), header.Get("X-OAuth-Scopes")
	if accepted != "" && header.Values("X-OAuth-Scopes") != nil && !shares(accepted, have) {
		return fault.New(fault.ProviderDisabled, "%s lacks a scope: it has %q, and one of %q is needed", r.token,
			forge.Clean(have),
			forge.Clean(accepted))
	}
	return r.missingPermission(n, said)
}

func (r refusals) missingPermission(n need, said string) *fault.Error {
	if r.isApp {
		return fault.New(fault.ProviderDisabled,
			"the GitHub App may not do this: %s; it needs the permission %q for the repository: "+
				"add it in the app's settings, and have the owner accept it in the installation's", fault.Said(said), string(n))
	}
	return fault.New(fault.ProviderDisabled,
		"GITHUB_TOKEN may not do this: %s; a fine-grained token needs the permission "+
			"%q for the repository, a classic one the scope repo, and its user the right to write", fault.Said(said), string(n))
}

// shares reports whether two lists of scopes have one in common.
func shares(a, b string) bool {
	for _, x := range strings.Split(a, ",") {
		for _, y := range strings.Split(b, ",") {
			if x = strings.TrimSpace(x); x != "" && x == strings.TrimSpace(y) {
				return true
			}
		}
	}
	return false
}

// translateGraphQL tells what an error of a GraphQL answer means. One without a type is a failure inside GitHub, after
// which a mutation may have been done.
func (r refusals) translateGraphQL(e graphError, resp *http.Response, op operation) error {
	said := r.said(e.Message)
	out := &refusal{kind: e.Type, code: e.Extensions.Code, said: said}
	switch {
	case e.Extensions.SAML:
		out.fault = r.fromWords("saml enforcement", op.need)
	case e.Type == "" && e.Extensions.Code != "":
		out.fault = fault.New(fault.ProviderDisabled,
			"this GitHub does not know what is asked of it: %s; an Enterprise Server of "+
				"a supported version is needed at GITHUB_API_URL", fault.Said(said))
	case e.Type == "RATE_LIMITED", e.Type == "RATE_LIMIT":
		out.fault = r.transport.LimitFault(resp, said)
	default:
		out.fault = r.fromWords(said, op.need)
	}
	if out.fault == nil {
		out.fault = r.fromType(e, said, op)
	}
	if out.fault.Code == fault.UpstreamError {
		return out.fault
	}
	return out
}

func (r refusals) fromType(e graphError, said string, op operation) *fault.Error {
	switch e.Type {
	case "NOT_FOUND":
		if len(e.Path) <= 1 { // the repository itself, or a mutation's
			return r.notFound()
		}
		return fault.New(fault.NotFound, "GitHub has no such thing: %s", fault.Said(said))
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return r.missingPermission(op.need, said)
	case "STALE_DATA":
		return fault.New(fault.Conflict, "the branch has moved meanwhile, so nothing was written to it: %s", fault.Said(said))
	case "UNPROCESSABLE":
		return fault.New(fault.Conflict, "GitHub could not do it in the repository's present state: %s", fault.Said(said))
	}
	var cause error
	if e.Type == "RESOURCE_LIMITS_EXCEEDED" || e.Type == "MAX_NODE_LIMIT_EXCEEDED" ||
		forge.Mentions(said, "result of a timeout") {
		cause = errGaveUp{}
	}
	return fault.Wrap(cause, fault.UpstreamError, "GitHub failed: %s; try again later", fault.Said(said))
}
