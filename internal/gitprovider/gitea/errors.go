package gitea

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// refusal is an answer with a status of 300 or more, before a method has said what it means there.
type refusal struct {
	resp    *http.Response
	status  int
	message string // the server's own, cleaned and cut; "" when it gave none
	isJSON  bool   // whether the API answered, and not a router, a proxy or another program
}

// newRefusal reads {"message", "url"}, the form of the API's errors. Everything else is not quoted: it may be a page.
func newRefusal(resp *http.Response, body []byte) *refusal {
	r := &refusal{resp: resp, status: resp.StatusCode}
	var said struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &said); err == nil {
		r.isJSON = true
		r.message = forge.Clean(withoutLog(said.Message))
	}
	return r
}

// withoutLog leaves out the lines of the server's log that its hooks write before what they say, such as warnings about
// its settings. They would take the room of the reason.
func withoutLog(message string) string {
	const stamp = "2006/01/02 15:04:05"
	lines := slices.DeleteFunc(strings.Split(message, "\n"), func(line string) bool {
		_, err := time.Parse(stamp, line[:min(len(line), len(stamp))])
		return err == nil
	})
	return strings.Join(lines, "\n")
}

// Error implements error. No refusal leaves the package; see toFault.
func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.message) }

// asRefusal finds the refusal in an error, or nil.
func asRefusal(err error) *refusal {
	var r *refusal
	errors.As(err, &r)
	return r
}

// statusIs reports whether err is a refusal by one of the statuses.
func statusIs(err error, statuses ...int) bool {
	r := asRefusal(err)
	return r != nil && slices.Contains(statuses, r.status)
}

// ignoreStatus returns err, or nil if it is a refusal with one of the statuses.
func ignoreStatus(err error, statuses ...int) error {
	if statusIs(err, statuses...) {
		return nil
	}
	return err
}

// isMissing reports whether the API itself answered that the thing does not exist. The text 404 of an unknown route
// does not count.
func isMissing(err error) bool {
	r := asRefusal(err)
	return r != nil && r.status == http.StatusNotFound && r.isJSON
}

// lacksRoute reports whether the server does not know the route: an older version, or something between us and it.
func lacksRoute(err error) bool {
	r := asRefusal(err)
	return r != nil && !r.isJSON && (r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed)
}

// lacksScope reports whether the token was refused for a scope that it lacks.
func lacksScope(err error) bool {
	return statusIs(err, http.StatusForbidden) && asRefusal(err).isScope()
}

// quotable returns the message unless the status is one at which Gitea tells administrators about its own files.
func (r *refusal) quotable() string {
	if r.status >= http.StatusInternalServerError {
		return ""
	}
	return r.message
}

// messageSuffix returns the server's message, to be appended to a sentence; "" if there is none.
func (r *refusal) messageSuffix() string {
	if r == nil || r.message == "" {
		return ""
	}
	return ": " + fault.Said(r.message)
}

// isScope recognises the message by which Gitea and Forgejo refuse a token that lacks a scope. It only decides about
// advice, so a failed match is harmless: the refusal is still a refusal.
func (r *refusal) isScope() bool { return strings.Contains(r.message, "required scope") }

// isAccount reports whether a 403 is about the token's user: one who is blocked, was never activated, or has to choose
// a password before anything else. As with isScope, the words only choose the advice.
func (r *refusal) isAccount() bool {
	return forge.Mentions(r.message, "prohibited from signing in", "must change your password", "account is not activated")
}

// isSigning reports whether a 403 is about a commit without a signature. As with isScope, the words only choose the
// advice.
func (r *refusal) isSigning() bool { return forge.Mentions(r.message, "unverified commit") }

// toFault makes a *fault.Error of whatever a call ended with. what names, in a message, the thing that a 404 is about
// besides the repository, such as "pull request #3"; "" if there is nothing else. A refusal is definite: of the codes
// that stand for "may have acted" it gets one only for a status of 500 and above, and for 408.
func (a *api) toFault(err error, repo gitprovider.RepoRef, what string) error {
	if err == nil {
		return nil
	}
	r := asRefusal(err)
	if r == nil {
		return fault.From(err)
	}
	if r.status < http.StatusBadRequest {
		return a.moved(r, repo)
	}
	if common := a.http.StatusFault(r.resp, r.quotable()); common != nil {
		return common
	}
	host := a.base.Host
	switch r.status {
	case http.StatusNotFound, http.StatusGone:
		return a.notFoundError(r, repo, what)
	case http.StatusForbidden:
		return a.forbidden(r, repo)
	case http.StatusLocked:
		return fault.Wrap(err, fault.RepoNotAllowed, "the repository %s is archived and takes no writes; unarchive it first",
			repo)
	case http.StatusMethodNotAllowed:
		return a.notGitea(r)
	case http.StatusRequestEntityTooLarge:
		return fault.Wrap(err, fault.ContentDenied,
			"%s takes no request that large (413); propose less at once, or have its "+
				"limit raised", host)
	default:
		return fault.Wrap(err, fault.Conflict, "%s refused the request for %s (%d)%s", host, repo, r.status,
			r.messageSuffix())
	}
}

// moved returns the error for a redirected write; reads follow redirects. The server redirects from a repository's
// former name; a redirect to elsewhere comes from a proxy. Either way nothing was written.
func (a *api) moved(r *refusal, repo gitprovider.RepoRef) error {
	if known := a.http.StatusFault(r.resp, r.quotable()); known != nil && known.Code == fault.ProviderDisabled {
		return known
	}
	return fault.Wrap(r, fault.NotFound, "the repository %s has another name at %s now (%d); use that", repo, a.base.Host,
		r.status)
}

func (a *api) notFoundError(r *refusal, repo gitprovider.RepoRef, what string) error {
	host := a.base.Host
	if below := strings.Trim(a.base.Path, "/"); !r.isJSON && below != "" {
		return fault.Wrap(r, fault.ProviderDisabled,
			"%s has no API below /%s (404 without an answer of Gitea's); %s is to be the "+
				"address of the installation itself, with a path only if the installation is below one: leave out owner, "+
				"repository and api/v1", host, forge.Clean(below), urlVariable)
	}
	if !r.isJSON {
		return a.notGitea(r)
	}
	thing := fmt.Sprintf("the repository %s does not exist at %s", repo, host)
	if what != "" {
		thing = fmt.Sprintf("%s does not exist in %s at %s, or that repository does not", what, repo, host)
	}
	return fault.Wrap(r, fault.NotFound, "%s, or the user of %s may not see it; check owner, name and access", thing,
		tokenVariable)
}

// notGitea is the error for a missing route that every supported server has.
func (a *api) notGitea(r *refusal) error {
	return fault.Wrap(r, fault.ProviderDisabled, "%s does not know this part of the API (%d); check that %s is the "+
		"address of a Gitea or Forgejo, with the path below which it is installed, such as /git/, and that its version is a "+
		"supported one", a.base.Host, r.status, urlVariable)
}

func (a *api) forbidden(r *refusal, repo gitprovider.RepoRef) error {
	if r.isScope() {
		return fault.Wrap(r, fault.ProviderDisabled,
			"%s lacks a scope that this needs (%s and %s are enough for everything)%s",
			tokenVariable, scopeRepository, scopeIssue, r.messageSuffix())
	}
	if forge.Mentions(r.message, "limited to public") {
		return fault.Wrap(r, fault.ProviderDisabled,
			"%s is limited to public repositories, and %s is private; make a token for public and "+
				"private ones%s", tokenVariable, repo, r.messageSuffix())
	}
	if r.isAccount() {
		return fault.Wrap(r, fault.ProviderDisabled,
			"the user of %s may not sign in at %s%s; sign in as that user, or have an "+
				"administrator unblock or activate the account, or use another user's token", tokenVariable, a.base.Host,
			strings.TrimSuffix(r.messageSuffix(), "."))
	}
	if r.isSigning() {
		return fault.Wrap(r, fault.RepoNotAllowed, "a rule of %s demands signed commits, and %s signs none for the user of "+
			"%s%s; %s", repo, a.base.Host, tokenVariable, r.messageSuffix(), signingAdvice)
	}
	if forge.Mentions(r.message, "protected branch") {
		return fault.Wrap(r, fault.RepoNotAllowed, "a rule of %s forbids it%s; have the branches %s exempted from the rule",
			repo, r.messageSuffix(),
			gitprovider.BranchPrefix+"**")
	}
	return fault.Wrap(r, fault.ProviderDisabled,
		"%s does not let the user of %s do this in %s (403)%s; give that user write "+
			"access to the repository", a.base.Host, tokenVariable, repo, r.messageSuffix())
}

// readRepository reads a repository. After a rename the server redirects, and the answer has the name of now.
func (a *api) readRepository(ctx context.Context, ref gitprovider.RepoRef) (*gitea.Repository, error) {
	repo, err := callSDK(ctx, a, func(c *gitea.Client) (*gitea.Repository, *gitea.Response, error) {
		return c.GetRepo(ref.Owner, ref.Name)
	})
	if err == nil && repo.Name == "" {
		return nil, a.wrongAnswer("the repository", ref)
	}
	return repo, err
}

// switchedOff returns the refusal of a repository that takes no pull requests, or nil. The server itself answers 404
// then, to everything that is about them.
func (a *api) switchedOff(from *gitea.Repository, repo gitprovider.RepoRef) error {
	switch {
	case !from.HasPullRequests:
		return fault.New(fault.RepoNotAllowed, "pull requests are switched off for %s at %s; switch them on in its settings",
			repo, a.base.Host)
	case from.Mirror:
		return fault.New(fault.RepoNotAllowed,
			"%s at %s is a mirror, which takes no pull requests; propose to the repository "+
				"that it mirrors", repo, a.base.Host)
	}
	return nil
}

// toFaultOfPull is toFault for pull requests. empty says that a repository without a commit, which has no pull
// requests, is not an error.
func (a *api) toFaultOfPull(ctx context.Context, err error, repo gitprovider.RepoRef, what string, empty bool) error {
	if isMissing(err) {
		if from, lookErr := a.readRepository(ctx, repo); lookErr == nil {
			if off := a.switchedOff(from, repo); off != nil || empty && from.Empty {
				return off
			}
		}
	}
	return a.toFault(err, repo, what)
}

// signingAdvice says what helps where commits must be signed: the server makes them, so that no key of ours would.
const signingAdvice = "have the server's administrator let it sign commits (SIGNING_KEY and CRUD_ACTIONS of " +
	"[repository.signing] in app.ini), or add a branch protection for " + gitprovider.BranchPrefix +
	"** that demands no signature and comes first"

// forbiddenByRule returns the refusal (403) of a change to a branch for somebody who may write to the repository: then
// a rule for branches of this name or for files keeps it off, or a hook of the server's. nil means that the user may
// not write, or that it could not be looked at.
func (a *api) forbiddenByRule(ctx context.Context, repo gitprovider.RepoRef, branch string, cause error) error {
	r := asRefusal(cause)
	// as for coming too often
	if r == nil || r.isScope() || r.isAccount() || r.isSigning() || a.http.StatusFault(r.resp, r.quotable()) != nil {
		return nil
	}
	from, err := a.readRepository(ctx, repo)
	if err != nil || from.Permissions == nil || !from.Permissions.Push {
		return nil
	}
	return fault.Wrap(cause, fault.RepoNotAllowed,
		"a rule of %s keeps the branch %s from being changed, although the user of %s "+
			"may write to the repository%s; in its settings, under branch protection, let that user push to %s, and leave the files "+
			"of proposals out of the protected file patterns", repo, branch, tokenVariable, r.messageSuffix(), gitprovider.BranchPrefix+
			"**")
}
