package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
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
