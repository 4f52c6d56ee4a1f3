package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/claudeops/claudeops/internal/fault"
)

// The sources, by the names of their providers.
const (
	GitHub = "github"
	Gitea  = "gitea" // and Forgejo
)

// Verify reports whether a delivery was signed with the secret: unauthenticated if not, and always for an empty secret. body
// is what arrived, byte by byte. Every signature that the source is known to send and that is there has to be right; a
// weaker one, such as SHA-1, is none. How long it takes says nothing about the right signature.
func Verify(source string, header http.Header, body []byte, secret string) error {
	if secret == "" {
		return unsigned("no secret is configured")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // a hash never fails
	right := hex.EncodeToString(mac.Sum(nil))
	found := false
	for _, s := range signatures(source) {
		values := header.Values(s.header)
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 {
			return unsigned(s.header + " is there more than once")
		}
		if !hmac.Equal([]byte(values[0]), []byte(s.prefix+right)) {
			return unsigned(s.header + " is not that of this body under the configured secret")
		}
		found = true
	}
	if !found {
		return unsigned("it has no " + signatures(source)[0].header + "; set the secret at the forge")
	}
	return nil
}

// signature is a header in which a source sends one, as prefix and lower-case hex.
type signature struct{ header, prefix string }

func signatures(source string) []signature {
	if source == GitHub {
		return []signature{{"X-Hub-Signature-256", "sha256="}}
	}
	return []signature{{"X-Gitea-Signature", ""}, {"X-Forgejo-Signature", ""}}
}

func unsigned(why string) error {
	return fault.New(fault.Unauthenticated, "the delivery is refused: %s", why)
}
