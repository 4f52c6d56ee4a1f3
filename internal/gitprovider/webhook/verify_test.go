package webhook_test

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what GitHub sends beside the signature that counts
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/gitprovider/webhook"
)

const secret = "a secret of the operator"

// source returns a forge's way of sending, from its driver.
func source(name string) webhook.Source {
	for _, d := range forges.All() {
		if d.Name == name {
			return d.Webhooks
		}
	}
	panic("no forge is named " + name)
}

func github() webhook.Source { return source("github") }
func gitea() webhook.Source  { return source("gitea") }

// plain is a forge that sends the secret itself.
func plain() webhook.Source {
	return webhook.Source{Name: "plain", Signatures: []webhook.Signature{{Header: "X-Gitlab-Token", Plain: true}}}
}

func mac(algorithm func() hash.Hash, secret, body string) string {
	h := hmac.New(algorithm, []byte(secret))
	_, _ = h.Write([]byte(body))
	return hex.EncodeToString(h.Sum(nil))
}

// headers makes a header of names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// GitHub's documentation has this example ("Validating webhook deliveries", "Testing the webhook payload validation").
func TestTheExampleOfGitHubsDocumentationIsRight(t *testing.T) {
	h := headers("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	if err := github().Verify(h, []byte("Hello, World!"), "It's a Secret to Everybody"); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheRightSignatureIsAccepted(t *testing.T) {
	const body = `{"action":"closed","number":7}`
	right := mac(sha256.New, secret, body)
	for name, row := range map[string]struct {
		source webhook.Source
		header http.Header
		body   string
		right  bool
	}{
		"GitHub, right": {github(), headers("X-Hub-Signature-256", "sha256="+right), body, true},
		"GitHub, with the old one beside it": {github(),
			headers("X-Hub-Signature-256", "sha256="+right, "X-Hub-Signature", "sha1=00"), body, true},
		"Gitea, right":   {gitea(), headers("X-Gitea-Signature", right), body, true},
		"Forgejo, right": {gitea(), headers("X-Forgejo-Signature", right), body, true},
		"Forgejo, right in both": {gitea(), headers("X-Forgejo-Signature", right, "X-Gitea-Signature", right),
			body, true},
		"Forgejo, wrong in one": {gitea(), headers("X-Forgejo-Signature", right, "X-Gitea-Signature", "00"),
			body, false},
		"missing":                          {github(), headers(), body, false},
		"missing at Gitea":                 {gitea(), headers(), body, false},
		"empty":                            {github(), headers("X-Hub-Signature-256", ""), body, false},
		"empty at Gitea, without a secret": {gitea(), headers("X-Gitea-Signature", ""), body, false},
		"only SHA-1": {github(), headers("X-Hub-Signature", "sha1="+mac(sha1.New, secret, body)),
			body, false},
		"SHA-1 in its place": {github(), headers("X-Hub-Signature-256", "sha1="+mac(sha1.New, secret, body)),
			body, false},
		"SHA-512 in its place": {github(),
			headers("X-Hub-Signature-256", "sha512="+mac(sha512.New, secret, body)), body, false},
		"without the algorithm":      {github(), headers("X-Hub-Signature-256", right), body, false},
		"with an algorithm at Gitea": {gitea(), headers("X-Gitea-Signature", "sha256="+right), body, false},
		"upper case": {github(), headers("X-Hub-Signature-256", "sha256="+strings.ToUpper(right)),
			body, false},
		"upper case at Gitea": {gitea(), headers("X-Gitea-Signature", strings.ToUpper(right)), body, false},
		"truncated":           {github(), headers("X-Hub-Signature-256", "sha256="+right[:62]), body, false},
		"longer":              {github(), headers("X-Hub-Signature-256", "sha256="+right+"00"), body, false},
		"with a space":        {github(), headers("X-Hub-Signature-256", "sha256="+right+" "), body, false},
		"twice": {github(),
			headers("X-Hub-Signature-256", "sha256="+right, "X-Hub-Signature-256", "sha256="+right), body, false},
		"of another secret": {github(),
			headers("X-Hub-Signature-256", "sha256="+mac(sha256.New, secret+"!", body)), body, false},
		"of no secret": {github(), headers("X-Hub-Signature-256", "sha256="+mac(sha256.New, "", body)),
			body, false},
		"of another body": {github(), headers("X-Hub-Signature-256", "sha256="+right), body + " ", false},
		"of the body in another form": {github(), headers("X-Hub-Signature-256", "sha256="+right),
			`{"number":7,"action":"closed"}`, false},
		"GitHub's header at Gitea":            {gitea(), headers("X-Hub-Signature-256", "sha256="+right), body, false},
		"Gitea's header at GitHub":            {github(), headers("X-Gitea-Signature", right), body, false},
		"the right one of another, forwarded": {gitea(), headers("X-Gogs-Signature", right), body, false},
		"the secret itself":                   {plain(), headers("X-Gitlab-Token", secret), body, true},
		"the secret itself, of another body":  {plain(), headers("X-Gitlab-Token", secret), body + " ", true},
		"the secret itself, cut":              {plain(), headers("X-Gitlab-Token", secret[1:]), body, false},
		"the secret itself, twice": {plain(), headers("X-Gitlab-Token", secret, "X-Gitlab-Token", secret), body,
			false},
		"a signature in the secret's place": {plain(), headers("X-Gitlab-Token", right), body, false},
		"the secret, where it is to sign":   {gitea(), headers("X-Gitea-Signature", secret), body, false},
		"no secret":                         {plain(), headers("X-Gitlab-Token", ""), body, false},
	} {
		err := row.source.Verify(row.header, []byte(row.body), secret)
		if row.right && err != nil || !row.right && fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), right)) {
			t.Errorf("%s: the error tells too much: %v", name, err)
		}
		if err := row.source.Verify(row.header, []byte(row.body), ""); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s, without a secret: %v", name, err)
		}
	}
}
