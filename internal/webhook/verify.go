package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
)

// The sources, by the names of their providers.
const (
	GitHub = "github"
	Gitea  = "gitea" // and Forgejo
)

// Signed reports whether a delivery carries what may be a signature: unauthenticated if not. It costs nothing, so that nobody has
// to read the body of a delivery that Verify refuses in any case.
func Signed(source string, header http.Header) error {
	found := false
	for _, s := range signatures(source) {
		switch values := header.Values(s.header); {
		case len(values) == 0:
			continue
		case len(values) > 1:
			return unsigned(s.header + " is there more than once")
		case len(values[0]) != len(s.prefix)+2*sha256.Size || !strings.HasPrefix(values[0], s.prefix):
			return unsigned(s.header + " is no signature of this kind")
		}
		found = true
	}
	if !found {
		return unsigned("it has no " + signatures(source)[0].header + "; set the secret at the forge")
	}
	return nil
}

// Verify reports whether a delivery was signed with the secret: unauthenticated if not, and always for an empty secret. body
// is what arrived, byte by byte. Every signature that the source is known to send and that is there has to be right; a
// weaker one, such as SHA-1, is none. How long it takes says nothing about the right signature.
func Verify(source string, header http.Header, body []byte, secret string) error {
	if secret == "" {
		return unsigned("no secret is configured")
	}
	if err := Signed(source, header); err != nil {
		return err
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // a hash never fails
	right := hex.EncodeToString(mac.Sum(nil))
	for _, s := range signatures(source) {
		given := header.Get(s.header)
		if given != "" && !hmac.Equal([]byte(given), []byte(s.prefix+right)) {
			return unsigned(s.header + " is not that of this body under the configured secret")
		}
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
