package webhook

import (
	"net/http"

	"github.com/claudeops/claudeops/internal/base/fault"
)

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
			return unsigned(kind.Header + " is no signature of this kind")
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
