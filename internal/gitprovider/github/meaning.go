package github

import (
	"net/http"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// meaning translates a REST refusal. Its codes are definite: none says that GitHub may have acted.
func (p *Provider) meaning(status int, said string, n need, header http.Header) *fault.Error {
	if f := p.byWords(said, n); f != nil {
		return f
	}
	switch status {
	case http.StatusForbidden:
		return p.forbidden(said, n, header)
	case http.StatusNotFound:
		return p.notFound()
	case http.StatusConflict:
		return fault.New(fault.Conflict, "GitHub could not do it in the repository's present state: %s; look again", said)
	case http.StatusGone:
		return fault.New(fault.RepoNotAllowed, "the repository has switched this off: %s", said)
	case http.StatusUnavailableForLegalReasons:
		return fault.New(fault.RepoNotAllowed, "GitHub has blocked access to the repository: %s", said)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return fault.New(fault.InvalidArgument, "GitHub did not take the request: %s", said)
	}
	return fault.New(fault.ProviderDisabled,
		"the answer %d is none that GitHub gives here: %s; check that GITHUB_API_URL is the root of its API", status, said)
}

// notFound cannot tell a repository that does not exist from one that the token may not see: GitHub does not.
func (p *Provider) notFound() *fault.Error {
	return fault.New(fault.NotFound, "GitHub has no such repository, or %s may not see it; check owner and name, and the "+
		"repositories that it is for", p.token)
}

// byWords knows refusals whose status or type says less than their words, or nil. Every phrase has a space: names of
// repositories and branches, which GitHub quotes, have none.
func (p *Provider) byWords(said string, n need) *fault.Error {
	switch {
	case mentions(said, "was archived so is read-only", "repository is archived"):
		return fault.New(fault.RepoNotAllowed, "the repository is archived, so it takes no changes; have it unarchived first")
	case mentions(said, "installation has been suspended"):
		return fault.New(fault.ProviderDisabled, "the installation of the GitHub App is suspended; have the owner end that in the "+
			"installation's settings")
	case mentions(said, "saml enforcement", "saml sso", "single sign-on"):
		return fault.New(fault.ProviderDisabled, "the organisation asks for single sign-on; authorise %s for it in its settings",
			p.token)
	case mentions(said, "rule violations", "protected branch", "protected ref", "is protected", "creations being restricted",
		"not authorized to push", "ref creation restricted"):
		return fault.New(fault.RepoNotAllowed, "a rule of the repository forbids it: %s; have the branches %s exempted from the "+
			"rule", said, gitprovider.BranchPrefix+"**")
	case mentions(said, "submitted too quickly", "secondary rate limit"):
		return rateLimited(secondaryWait)
	case mentions(said, "resource not accessible by", "must have push access", "must have admin rights",
		"has not been granted the required scopes", "does not have the correct permissions"):
		return p.lacks(n, said)
	}
	return nil
}

// forbidden is a 403. A classic token's scopes are in the headers, and so is what a fine-grained one lacks.
func (p *Provider) forbidden(said string, n need, header http.Header) *fault.Error {
	if accepted := header.Get("X-Accepted-GitHub-Permissions"); accepted != "" {
		return p.lacks(need(clean(accepted)), said)
	}
	accepted, have := header.Get("X-Accepted-OAuth-Scopes"), header.Get("X-OAuth-Scopes")
	if accepted != "" && header.Values("X-OAuth-Scopes") != nil && !shares(accepted, have) {
		return fault.New(fault.ProviderDisabled, "%s lacks a scope: it has %q, and one of %q is needed", p.token, clean(have),
			clean(accepted))
	}
	return p.lacks(n, said)
}

func (p *Provider) lacks(n need, said string) *fault.Error {
	if p.app != nil {
		return fault.New(fault.ProviderDisabled, "the GitHub App may not do this: %s; it needs the permission %q for the repository: "+
			"add it in the app's settings, and have the owner accept it in the installation's", said, string(n))
	}
	return fault.New(fault.ProviderDisabled, "GITHUB_TOKEN may not do this: %s; a fine-grained token needs the permission "+
		"%q for the repository, a classic one the scope repo, and its user the right to write", said, string(n))
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

// graphRefused tells what an error of a GraphQL answer means. One without a type is a failure inside GitHub, after which
// a mutation may have been done.
func (p *Provider) graphRefused(e graphError, resp *http.Response, op operation) error {
	said := p.said(e.Message)
	r := &refusal{kind: e.Type, said: said}
	switch {
	case e.Extensions.SAML:
		r.fault = p.byWords("saml enforcement", op.need)
	case e.Type == "" && e.Extensions.Code != "":
		r.fault = fault.New(fault.ProviderDisabled, "this GitHub does not know what is asked of it: %s; an Enterprise Server of "+
			"a supported version is needed at GITHUB_API_URL", said)
	case e.Type == "RATE_LIMITED", e.Type == "RATE_LIMIT":
		r.fault = p.transport.LimitFault(resp, said)
	default:
		r.fault = p.byWords(said, op.need)
	}
	if r.fault == nil {
		r.fault = p.byType(e, said, op)
	}
	if r.fault.Code == fault.UpstreamError {
		return r.fault
	}
	return r
}

func (p *Provider) byType(e graphError, said string, op operation) *fault.Error {
	switch e.Type {
	case "NOT_FOUND":
		if len(e.Path) <= 1 { // the repository itself, or a mutation's
			return p.notFound()
		}
		return fault.New(fault.NotFound, "GitHub has no such thing: %s", said)
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return p.lacks(op.need, said)
	case "STALE_DATA":
		return fault.New(fault.Conflict, "the branch has moved meanwhile, so nothing was written to it: %s", said)
	case "UNPROCESSABLE":
		return fault.New(fault.Conflict, "GitHub could not do it in the repository's present state: %s", said)
	}
	var cause error
	if mentions(said, "result of a timeout") {
		cause = errGaveUp{}
	}
	return fault.Wrap(cause, fault.UpstreamError, "GitHub failed: %s; try again later", said)
}
