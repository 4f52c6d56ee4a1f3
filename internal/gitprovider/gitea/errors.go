package gitea

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// refusal is an answer with a status of 300 or more, before a method has said what it means there.
type refusal struct {
	resp    *http.Response
	status  int
	message string // the server's own, cleaned and cut; "" when it gave none
	isJSON  bool   // whether the API answered, and not a router, a proxy or another program
}

// maxMessage bounds, in bytes, what is quoted of a server's message.
const maxMessage = 300

// newRefusal reads {"message", "url"}, the form of the API's errors. Everything else is not quoted: it may be a page.
func newRefusal(resp *http.Response, body []byte) *refusal {
	r := &refusal{resp: resp, status: resp.StatusCode}
	var said struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &said); err == nil {
		r.isJSON = true
		r.message = clean(said.Message)
	}
	return r
}

// clean makes a server's message fit for a line: no control or invisible characters, no line ends, cut.
func clean(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "..."
	}
	return s
}

// Error implements error. No refusal leaves the package; see judge.
func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.message) }

// statusIs reports whether err is a refusal by one of the statuses.
func statusIs(err error, statuses ...int) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false
	}
	for _, s := range statuses {
		if r.status == s {
			return true
		}
	}
	return false
}

// isMissing reports whether the API itself said that there is no such thing. The text 404 of an unknown route does not.
func isMissing(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusNotFound && r.isJSON
}

// lacksRoute reports whether the server does not know the route: an older version, or something between us and it.
func lacksRoute(err error) bool {
	var r *refusal
	return errors.As(err, &r) && !r.isJSON && (r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed)
}

// judge makes a *fault.Error of whatever a call ended with. what names, in a message, the thing that a 404 is about
// besides the repository, such as "pull request #3"; "" if there is nothing else. A refusal is definite: of the codes
// that stand for "may have acted" it gets one only for a status of 500 and above, and for 408.
func (p *Provider) judge(err error, repo gitprovider.RepoRef, what string) error {
	var r *refusal
	if !errors.As(err, &r) {
		return asFault(err)
	}
	if r.status < http.StatusBadRequest {
		return p.moved(r, repo)
	}
	if common := p.http.StatusFault(r.resp, r.quotable()); common != nil {
		return common
	}
	switch r.status {
	case http.StatusNotFound, http.StatusGone:
		return p.missing(r, repo, what)
	case http.StatusForbidden:
		return p.forbidden(r, repo)
	case http.StatusLocked:
		return fault.Wrap(err, fault.RepoNotAllowed, "the repository %s is archived and takes no writes; unarchive it first",
			repo)
	case http.StatusMethodNotAllowed:
		return fault.Wrap(err, fault.ProviderDisabled, "%s does not know this part of the API (405); check that %s is the "+
			"address of a Gitea or Forgejo, and that its version is a supported one", p.base.Host, urlVariable)
	case http.StatusRequestEntityTooLarge:
		return fault.Wrap(err, fault.ContentDenied, "%s takes no request that large (413); propose less at once, or have its "+
			"limit raised", p.base.Host)
	default:
		return fault.Wrap(err, fault.Conflict, "%s refused the request for %s (%d)%s", p.base.Host, repo, r.status, r.said())
	}
}

// moved is for writes: reads follow redirects. The server redirects from a repository's former name; a redirect to
// elsewhere comes from a proxy. Either way nothing was written.
func (p *Provider) moved(r *refusal, repo gitprovider.RepoRef) error {
	to, err := url.Parse(r.resp.Header.Get("Location"))
	if err == nil && to.Host != "" && (to.Host != p.base.Host || to.Scheme != p.base.Scheme) {
		return fault.Wrap(r, fault.ProviderDisabled, "%s redirects to %s://%s; set %s to the address that answers itself",
			p.base.Host, clean(to.Scheme), clean(to.Host), urlVariable)
	}
	return fault.Wrap(r, fault.NotFound, "the repository %s has another name at %s now (%d); use that", repo, p.base.Host,
		r.status)
}

func asFault(err error) error {
	if err == nil {
		return nil
	}
	return fault.From(err)
}

// quotable is the message unless the status is one at which Gitea tells administrators about its own files.
func (r *refusal) quotable() string {
	if r.status >= http.StatusInternalServerError {
		return ""
	}
	return r.message
}

func (r *refusal) said() string {
	if r.message == "" {
		return ""
	}
	return ": " + r.message
}

// saidBy is what the server said with a refusal, to follow a sentence; "" if it said nothing.
func saidBy(err error) string {
	var r *refusal
	if !errors.As(err, &r) {
		return ""
	}
	return r.said()
}

func (p *Provider) missing(r *refusal, repo gitprovider.RepoRef, what string) error {
	if below := strings.Trim(p.base.Path, "/"); !r.isJSON && below != "" {
		return fault.Wrap(r, fault.ProviderDisabled, "%s has no API below /%s (404 without an answer of Gitea's); %s is to be the "+
			"address of the installation itself, with a path only if the installation is below one: leave out owner, "+
			"repository and api/v1", p.base.Host, clean(below), urlVariable)
	}
	if !r.isJSON {
		return fault.Wrap(r, fault.ProviderDisabled, "%s does not know this part of the API (404 without an answer of Gitea's); "+
			"check that %s is the address of a Gitea or Forgejo, and that its version is a supported one", p.base.Host, urlVariable)
	}
	thing := fmt.Sprintf("the repository %s does not exist at %s", repo, p.base.Host)
	if what != "" {
		thing = fmt.Sprintf("%s does not exist in %s at %s, or that repository does not", what, repo, p.base.Host)
	}
	return fault.Wrap(r, fault.NotFound, "%s, or the user of %s may not see it; check owner, name and access", thing,
		tokenVariable)
}

// scopePhrase is in the message by which Gitea and Forgejo refuse a token that lacks a scope. That it says no more than
// what to mend makes matching it harmless: without a match the refusal is still a refusal.
const scopePhrase = "required scope"

// isAccount reports whether a 403 is about the token's user: one who is blocked, was never activated, or has to choose a
// password before anything else. As with scopePhrase, the words only choose the advice.
func (r *refusal) isAccount() bool {
	for _, phrase := range []string{"prohibited from signing in", "must change your password", "account is not activated"} {
		if strings.Contains(r.message, phrase) {
			return true
		}
	}
	return false
}

func (r *refusal) isScope() bool { return strings.Contains(r.message, scopePhrase) }

func (p *Provider) forbidden(r *refusal, repo gitprovider.RepoRef) error {
	if r.isScope() {
		return fault.Wrap(r, fault.ProviderDisabled, "%s lacks a scope that this needs (write:repository and write:issue are "+
			"enough for everything)%s", tokenVariable, r.said())
	}
	if r.isAccount() {
		return fault.Wrap(r, fault.ProviderDisabled, "the user of %s may not sign in at %s%s; sign in as that user, or have an "+
			"administrator unblock or activate the account, or use another user's token", tokenVariable, p.base.Host,
			strings.TrimSuffix(r.said(), "."))
	}
	return fault.Wrap(r, fault.RepoNotAllowed, "%s does not let the user of %s do this in %s (403)%s; give that user write "+
		"access to the repository", p.base.Host, tokenVariable, repo, r.said())
}
