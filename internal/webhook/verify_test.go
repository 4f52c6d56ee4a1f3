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

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/webhook"
)

const secret = "a secret of the operator"

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
	if err := webhook.Verify(webhook.GitHub, h, []byte("Hello, World!"), "It's a Secret to Everybody"); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheRightSignatureIsAccepted(t *testing.T) {
	const body = `{"action":"closed","number":7}`
	right := mac(sha256.New, secret, body)
	for name, row := range map[string]struct {
		source string
		header http.Header
		body   string
		right  bool
	}{
		"GitHub, right":                       {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+right), body, true},
		"GitHub, with the old one beside it":  {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+right, "X-Hub-Signature", "sha1=00"), body, true},
		"Gitea, right":                        {webhook.Gitea, headers("X-Gitea-Signature", right), body, true},
		"Forgejo, right":                      {webhook.Gitea, headers("X-Forgejo-Signature", right), body, true},
		"Forgejo, right in both":              {webhook.Gitea, headers("X-Forgejo-Signature", right, "X-Gitea-Signature", right), body, true},
		"Forgejo, wrong in one":               {webhook.Gitea, headers("X-Forgejo-Signature", right, "X-Gitea-Signature", "00"), body, false},
		"missing":                             {webhook.GitHub, headers(), body, false},
		"missing at Gitea":                    {webhook.Gitea, headers(), body, false},
		"empty":                               {webhook.GitHub, headers("X-Hub-Signature-256", ""), body, false},
		"empty at Gitea, without a secret":    {webhook.Gitea, headers("X-Gitea-Signature", ""), body, false},
		"only SHA-1":                          {webhook.GitHub, headers("X-Hub-Signature", "sha1="+mac(sha1.New, secret, body)), body, false},
		"SHA-1 in its place":                  {webhook.GitHub, headers("X-Hub-Signature-256", "sha1="+mac(sha1.New, secret, body)), body, false},
		"SHA-512 in its place":                {webhook.GitHub, headers("X-Hub-Signature-256", "sha512="+mac(sha512.New, secret, body)), body, false},
		"without the algorithm":               {webhook.GitHub, headers("X-Hub-Signature-256", right), body, false},
		"with an algorithm at Gitea":          {webhook.Gitea, headers("X-Gitea-Signature", "sha256="+right), body, false},
		"upper case":                          {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+strings.ToUpper(right)), body, false},
		"upper case at Gitea":                 {webhook.Gitea, headers("X-Gitea-Signature", strings.ToUpper(right)), body, false},
		"truncated":                           {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+right[:62]), body, false},
		"longer":                              {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+right+"00"), body, false},
		"with a space":                        {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+right+" "), body, false},
		"twice":                               {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+right, "X-Hub-Signature-256", "sha256="+right), body, false},
		"of another secret":                   {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+mac(sha256.New, secret+"!", body)), body, false},
		"of no secret":                        {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+mac(sha256.New, "", body)), body, false},
		"of another body":                     {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+right), body + " ", false},
		"of the body in another form":         {webhook.GitHub, headers("X-Hub-Signature-256", "sha256="+right), `{"number":7,"action":"closed"}`, false},
		"GitHub's header at Gitea":            {webhook.Gitea, headers("X-Hub-Signature-256", "sha256="+right), body, false},
		"Gitea's header at GitHub":            {webhook.GitHub, headers("X-Gitea-Signature", right), body, false},
		"the right one of another, forwarded": {webhook.Gitea, headers("X-Gogs-Signature", right), body, false},
	} {
		err := webhook.Verify(row.source, row.header, []byte(row.body), secret)
		if row.right && err != nil || !row.right && fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), right)) {
			t.Errorf("%s: the error tells too much: %v", name, err)
		}
		if err := webhook.Verify(row.source, row.header, []byte(row.body), ""); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s, without a secret: %v", name, err)
		}
	}
}
