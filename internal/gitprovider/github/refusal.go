package github

import (
	"errors"
	"net/http"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
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
	status int    // of REST; 0 for GraphQL
	kind   string // of GraphQL's error: NOT_FOUND, UNPROCESSABLE and the like
	code   string // of a document that GraphQL does not understand
	said   string // GitHub's words, cleaned and capped
	errors []gogithub.Error
	fault  *fault.Error
}

// Error implements error.
func (r *refusal) Error() string { return r.fault.Error() }

// Unwrap lets errors.As see the fault.
func (r *refusal) Unwrap() error { return r.fault }

// says reports whether GitHub's words hold one of the phrases, letter case aside.
func (r *refusal) says(phrases ...string) bool { return forge.Mentions(r.said, phrases...) }

// names reports whether REST's validation found fault with the field.
func (r *refusal) names(field string) bool {
	for _, e := range r.errors {
		if e.Field == field {
			return true
		}
	}
	return false
}

// refused finds the refusal in an error, or nil.
func refused(err error) *refusal {
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

// said prepares GitHub's text for a message: cleaned, and without the token, which an answer might echo.
func (r refusals) said(message string) string { return forge.Clean(r.transport.Scrub(message)) }

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
	return r.said(strings.Join(said, "; "))
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
		if f := r.transport.StatusFault(resp, r.said(message)); f != nil {
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
		return &refusal{status: status, said: said, fault: known}
	case status >= 300 && status < 400 && writes: // transport does not repeat a write elsewhere, so nothing was done
		return &refusal{status: status, said: said, fault: fault.New(fault.Conflict,
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
	return &refusal{status: status, said: said, errors: e.Errors, fault: f}
}

// errGaveUp is the cause of a failure that GitHub's gateway tells, or GraphQL in its stead: as a rule of a query that
// took longer than the 10 seconds that it is given.
type errGaveUp struct{}

// Error implements error.
func (errGaveUp) Error() string { return "GitHub gave up on the request" }
