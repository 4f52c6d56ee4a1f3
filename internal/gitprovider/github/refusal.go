package github

import (
	"errors"
	"net/http"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// need is a permission that a request asks of the token, as GitHub names it for fine-grained tokens. A classic token
// has all of them with the scope repo.
type need string

const (
	needMetadata  need = "Metadata: read"
	needContents  need = "Contents: read and write"
	needPulls     need = "Pull requests: read and write"
	needPullsRead need = "Pull requests: read"
	needIssues    need = "Issues: read and write"
	needActions   need = "Actions: read"
)

// refusal is a definite negative answer of GitHub: nothing was done. Its fault applies unless the calling method knows
// better.
type refusal struct {
	status  int    // of REST; 0 for GraphQL
	kind    string // of GraphQL's error: NOT_FOUND, UNPROCESSABLE and the like
	code    string // of a document that GraphQL does not understand
	message string // GitHub's words, cleaned and capped
	errors  []gogithub.Error
	fault   *fault.Error
}

// Error implements error.
func (r *refusal) Error() string { return r.fault.Error() }

// Unwrap lets errors.As see the fault.
func (r *refusal) Unwrap() error { return r.fault }

// says reports whether GitHub's words hold one of the phrases, letter case aside.
func (r *refusal) says(phrases ...string) bool { return forge.Mentions(r.message, phrases...) }

// namesField reports whether REST's validation found fault with the field.
func (r *refusal) namesField(field string) bool {
	for _, e := range r.errors {
		if e.Field == field {
			return true
		}
	}
	return false
}

// asRefusal finds the refusal in an error, or nil.
func asRefusal(err error) *refusal {
	var r *refusal
	errors.As(err, &r)
	return r
}

// refusals says what the refusals of GitHub mean.
type refusals struct {
	transport *transport.Transport
	token     string // what messages call the token
	isApp     bool
	now       func() time.Time
}

// cleanMessage prepares GitHub's text for a message: cleaned, and without the token, which an answer might echo.
func (r refusals) cleanMessage(message string) string { return forge.Clean(r.transport.Scrub(message)) }

// saidBy returns the message of a REST refusal and of its validation errors.
func (r refusals) saidBy(e *gogithub.ErrorResponse) string {
	said := []string{e.Message}
	for _, detail := range e.Errors {
		switch {
		case detail.Message != "":
			said = append(said, detail.Message)
		case detail.Field != "":
			said = append(said, detail.Field+" is "+detail.Code)
		}
	}
	return r.cleanMessage(strings.Join(said, "; "))
}

// translate classifies an error of the client: a refusal, or an unknown outcome.
func (r refusals) translate(err error, n need) error {
	var (
		limit    *gogithub.RateLimitError
		abuse    *gogithub.AbuseRateLimitError
		factor   *gogithub.TwoFactorAuthError
		answered *gogithub.ErrorResponse
		accepted *gogithub.AcceptedError
	)
	switch {
	case errors.As(err, &limit):
		return r.fromLimit(limit.Response, limit.Message, limit.Rate.Reset.Sub(r.now()))
	case errors.As(err, &abuse):
		wait := secondaryWait
		if abuse.RetryAfter != nil {
			wait = *abuse.RetryAfter
		}
		return r.fromLimit(abuse.Response, abuse.Message, wait)
	case errors.As(err, &factor):
		return r.fromAnswer((*gogithub.ErrorResponse)(factor), n)
	case errors.As(err, &answered):
		return r.fromAnswer(answered, n)
	case errors.As(err, &accepted):
		return fault.Wrap(err, fault.UpstreamError, "GitHub took the request but has not done it yet; look again later")
	}
	return r.transport.Failure(err)
}

// secondaryWait is the minimum wait that GitHub requires after a secondary limit that names no time (docs.github.com,
// "Rate limits for the REST API").
const secondaryWait = time.Minute

// fromLimit returns a rate limit.
func (r refusals) fromLimit(resp *http.Response, message string, wait time.Duration) error {
	if resp != nil && len(resp.Header) > 0 {
		if f := r.transport.StatusFault(resp, r.cleanMessage(message)); f != nil {
			return f
		}
	}
	return rateLimited(wait)
}

func rateLimited(wait time.Duration) *fault.Error {
	f := fault.New(fault.RateLimited, "GitHub's limit of requests for this token is reached; try again later")
	f.RetryAfter = max(wait, time.Second)
	return f
}

// fromAnswer tells what a REST answer other than success means.
func (r refusals) fromAnswer(e *gogithub.ErrorResponse, n need) error {
	status, said := e.Response.StatusCode, r.saidBy(e)
	writes := e.Response.Request != nil && e.Response.Request.Method != http.MethodGet
	known := r.transport.StatusFault(e.Response, said)
	switch {
	case known != nil && known.Code == fault.ProviderDisabled: // of the configuration: nothing was done
		return &refusal{status: status, message: said, fault: known}
	case status >= 300 && status < 400 && writes: // transport does not repeat a write elsewhere, so nothing was done
		return &refusal{status: status, message: said, fault: fault.New(fault.Conflict,
			"the repository was renamed or moved meanwhile, and nothing was done; try again")}
	case known != nil:
		if status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
			known.Cause = errGaveUp{}
		}
		return known
	}
	f := r.fromStatus(status, said, n, e.Response.Header)
	if id := e.Response.Header.Get("X-GitHub-Request-Id"); id != "" {
		f.Message += " (request id " + forge.Clean(id) + ")"
	}
	return &refusal{status: status, message: said, errors: e.Errors, fault: f}
}

// errGaveUp is the cause of a failure that GitHub's gateway tells, or GraphQL in its stead: as a rule of a query that
// took longer than the 10 seconds that it is given.
type errGaveUp struct{}

// Error implements error.
func (errGaveUp) Error() string { return "GitHub gave up on the request" }

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
	if no := asRefusal(err); no != nil && no.fault.Code == fault.NotFound {
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
	said := r.cleanMessage(e.Message)
	out := &refusal{kind: e.Type, code: e.Extensions.Code, message: said}
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
