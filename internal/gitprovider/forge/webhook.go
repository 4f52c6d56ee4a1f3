// This file reads the webhooks that GitHub, Gitea and Forgejo send: it checks that the sender knows the secret, and
// finds out which pull requests a delivery is about, or which act on an issue may start a session. Nothing else of a
// delivery is read: callers ask the provider instead.
//
// Facts about the senders, and where they are from:
//
//   - GitHub signs the raw body with HMAC-SHA256 and sends "sha256=" and lower-case hex in X-Hub-Signature-256; the
//     event is in X-GitHub-Event, the id of the delivery in X-GitHub-Delivery, and a redelivery has the id of the
//     original. It gives an answer ten seconds and tries nothing again by itself (docs.github.com, "Webhook events and
//     payloads", "Best practices for using webhooks", "Handling failed webhook deliveries").
//   - Gitea signs in the same way and sends the bare hex in X-Gitea-Signature, with X-Gitea-Event and X-Gitea-Delivery;
//     a replay from its pages is a new delivery with a new id, and it tries nothing again by itself
//     (services/webhook/deliver.go, models/webhook/hooktask.go and modules/webhook/type.go of go-gitea/gitea).
//     X-Gitea-Event groups: it is pull_request for a synchronisation, too, and pull_request_approved or
//     pull_request_rejected for a review.
//   - Forgejo sends the same headers, and each with X-Forgejo in place of X-Gitea beside it.
//   - All three send push when a branch is changed, with its name as refs/heads/NAME in ref; a push that removes the
//     branch, too.

package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Source is a kind of forge that sends webhooks.
type Source struct {
	Name, Title string      // of its provider, and for people
	Signatures  []Signature // every one that is there has to be right
	// what the names of its other headers begin with: X-GitHub- for X-GitHub-Event; the first that is there counts
	Headers []string
	Events  []string // after which the records may have to change
}

// Signature is a header that proves that the sender knows the secret: as the HMAC-SHA256 of the body, the prefix and
// lower-case hex; or, if Plain, as the prefix and the secret itself, which proves nothing about the body (GitLab's
// X-Gitlab-Token, docs.gitlab.com, "Webhooks").
type Signature struct {
	Header, Prefix string
	Plain          bool
}

// mayBe reports whether a header's value has the form of this signature.
func (s Signature) mayBe(value string) bool {
	given, prefixed := strings.CutPrefix(value, s.Prefix)
	return prefixed && (s.Plain && given != "" || !s.Plain && len(given) == hex.EncodedLen(sha256.Size))
}

// right reports whether a header's value is the signature of a body. How long it takes says nothing about the right
// one.
func (s Signature) right(value string, body []byte, secret string) bool {
	given, _ := strings.CutPrefix(value, s.Prefix)
	if s.Plain {
		a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(secret)) // of one length
		return hmac.Equal(a[:], b[:])
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // a hash never fails
	return hmac.Equal([]byte(given), []byte(hex.EncodeToString(mac.Sum(nil))))
}

// Signed reports whether a delivery carries something in the form of a signature: unauthenticated if not. It is cheap,
// so the body of a delivery that Verify would refuse anyway need not be read.
func (s Source) Signed(header http.Header) error {
	found := false
	for _, kind := range s.Signatures {
		switch values := header.Values(kind.Header); {
		case len(values) == 0:
			continue
		case len(values) > 1:
			return unsigned(kind.Header + " is there more than once")
		case !kind.mayBe(values[0]):
			return unsigned(kind.Header + " is not a signature of this kind")
		}
		found = true
	}
	if !found {
		return unsigned("it has no " + s.Signatures[0].Header + "; set the secret at the forge")
	}
	return nil
}

// Verify reports whether a delivery was signed with the secret: unauthenticated if not, and always for an empty secret.
// body holds the bytes as received. Every known kind of signature that is present has to be right; weaker ones, such as
// SHA-1, are ignored.
func (s Source) Verify(header http.Header, body []byte, secret string) error {
	if secret == "" {
		return unsigned("no secret is configured")
	}
	if err := s.Signed(header); err != nil {
		return err
	}
	for _, kind := range s.Signatures {
		if given := header.Get(kind.Header); given != "" && !kind.right(given, body, secret) {
			return unsigned(kind.Header + " is not that of this body under the configured secret")
		}
	}
	return nil
}

func unsigned(why string) error {
	return fault.New(fault.Unauthenticated, "the delivery is refused: %s", why)
}

// Delivery holds the relevant fields of a webhook.
type Delivery struct {
	ID    string // of the delivery, as the source numbers them
	Event string
	Ping  bool // nothing has happened: the source tries the connection
	// Owner and Repo, with Numbers or Branch, name the pull requests that something has happened to. Both are empty for
	// what does not concern the records.
	Owner, Repo string
	Numbers     []int
	Branch      string // of a push: it may be the head of a pull request of ours
	// Start names what may start a session; nil for nothing.
	Start *StartRequest
}

// StartRequest names an act on an issue or a pull request that may start a session. Who acted is not in it.
type StartRequest struct {
	Owner, Repo string
	Number      int
	Comment     int64 // that begins a line with gitprovider.StartCommand; 0: the issue got the label gitprovider.LabelOurs
}

// Concerns reports whether the delivery is about something that is recorded.
func (d Delivery) Concerns() bool { return len(d.Numbers) > 0 || d.Branch != "" }

// Bounds of what is read.
const (
	maxWord    = 100 // bytes of an id and of an event's name
	maxNumbers = 10  // pull requests of one check suite
	maxNumber  = 1<<31 - 1
	maxBranch  = 200 // bytes of a branch's name; ours are shorter
)

// payload is the part of a body that is read. All sources agree on it, as far as they have it.
type payload struct {
	Action      string
	Ref         string // of a push: refs/heads/...
	Number      int64
	PullRequest *struct{ Number int64 } `json:"pull_request"`
	CheckSuite  *struct {
		PullRequests []struct{ Number int64 } `json:"pull_requests"`
	} `json:"check_suite"`
	State      string // of a status
	Branches   []struct{ Name string }
	Repository *struct {
		FullName string `json:"full_name"`
	}
	Issue *struct {
		Number int64
		Labels []struct{ Name string }
	}
	Label   *struct{ Name string } // that GitHub tells of
	Comment *struct {
		ID   int64
		Body string
	}
}

// Parse reads a delivery whose signature was verified; invalid_argument if it has none of the forms that the source is
// known to send. An irrelevant event is not an error.
func (s Source) Parse(header http.Header, body []byte) (Delivery, error) {
	d := Delivery{ID: s.headerWord(header, "Delivery"), Event: s.headerWord(header, "Event")}
	if d.ID == "" || d.Event == "" {
		return d, malformed("it has no %[1]sDelivery and %[1]sEvent, of at most %[2]d visible characters each", s.Headers[0],
			maxWord)
	}
	if d.Event == "ping" {
		d.Ping = true
		return d, nil
	}
	if !slices.Contains(s.Events, d.Event) {
		return d, nil
	}
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return d, malformed("its body is not the JSON object of an event")
	}
	if !changes(d.Event, p.Action) {
		return d, nil
	}
	switch d.Event {
	case "push":
		return d, d.pushed(p.Ref, p)
	case "status":
		return d, d.reported(p)
	case "issues", "issue_comment":
		return d, d.asked(p)
	}
	var numbers []int64
	switch {
	case p.PullRequest != nil:
		numbers = []int64{p.PullRequest.Number}
	case p.CheckSuite != nil:
		for _, pr := range p.CheckSuite.PullRequests {
			numbers = append(numbers, pr.Number)
		}
	default:
		numbers = []int64{p.Number}
	}
	return d, d.about(p, numbers)
}

// setRepository fills in the repository that the delivery is about.
func (d *Delivery) setRepository(p payload) error {
	if p.Repository == nil {
		return malformed("it names no repository")
	}
	owner, repo, _ := strings.Cut(p.Repository.FullName, "/")
	if gitprovider.CheckRepoPart(owner) != nil || gitprovider.CheckRepoPart(repo) != nil {
		return malformed("it names no repository")
	}
	d.Owner, d.Repo = owner, repo
	return nil
}

// pushed fills in the branch of a push, if it can be one of ours: those of other pull requests do not concern the
// records.
func (d *Delivery) pushed(ref string, p payload) error {
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	if !isBranch || !strings.HasPrefix(branch, gitprovider.BranchPrefix) || len(branch) > maxBranch {
		return nil
	}
	if err := d.setRepository(p); err != nil {
		return err
	}
	d.Branch = branch
	return nil
}

// reported fills in the branch of a commit about which a service said something final, as pushed does.
func (d *Delivery) reported(p payload) error {
	if p.State == "pending" {
		return nil
	}
	for _, branch := range p.Branches {
		if err := d.pushed("refs/heads/"+branch.Name, p); err != nil || d.Branch != "" {
			return err
		}
	}
	return nil
}

// about fills in which pull requests the delivery is about.
func (d *Delivery) about(p payload, numbers []int64) error {
	if err := d.setRepository(p); err != nil {
		return err
	}
	for _, n := range numbers[:min(len(numbers), maxNumbers)] {
		if n < 1 || n > maxNumber {
			d.Numbers = nil
			return malformed("it names no pull request")
		}
		if !slices.Contains(d.Numbers, int(n)) {
			d.Numbers = append(d.Numbers, int(n))
		}
	}
	return nil
}

// changes reports whether an action of such an event may change what is recorded: labels, titles and assignments do
// not.
func changes(event, action string) bool {
	switch event {
	case "pull_request", "pull_request_sync":
		return slices.Contains([]string{"closed", "reopened", "synchronize", "synchronized"}, action)
	case "check_suite":
		return action == "completed"
	case "issues": // Gitea says only that labels were changed, and of a new issue not even that
		return slices.Contains([]string{"labeled", "label_updated", "opened"}, action)
	case "issue_comment":
		return action == "created"
	}
	return true
}

// headerWord returns the value of the first of the headers with this ending that is there; "" if it is not one of at
// most maxWord visible characters.
func (s Source) headerWord(header http.Header, ending string) string {
	for _, prefix := range s.Headers {
		values := header.Values(prefix + ending)
		if len(values) == 0 {
			continue
		}
		visible := func(r rune) bool { return r > ' ' && r < 0x7f }
		if len(values) > 1 || len(values[0]) > maxWord ||
			strings.ContainsFunc(values[0], func(r rune) bool { return !visible(r) }) {
			return ""
		}
		return values[0]
	}
	return ""
}

func malformed(format string, args ...any) error {
	return fault.New(fault.InvalidArgument, "the delivery cannot be read: "+format, args...)
}
