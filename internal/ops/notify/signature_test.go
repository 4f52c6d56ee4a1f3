package notify

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// A vector of its own, so that a change of what is signed cannot pass by changing both sides. Computed with
// printf '1773486000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef
const (
	vectorSecret    = "0123456789abcdef"
	vectorSeconds   = 1773486000
	vectorBody      = `{"a":1}`
	vectorSignature = "v1=4551cbf69a8a586db1a705f0bce5951bfaa69e3fd5b955bf77f857eac61858e0"
)

func signedHeader() http.Header {
	h := http.Header{}
	sign(h, vectorSecret, time.Unix(vectorSeconds, 999), []byte(vectorBody))
	return h
}

func TestSignatureIsTheDocumentedOne(t *testing.T) {
	t.Parallel()
	h := signedHeader()
	if got := h.Get("Claudeops-Signature"); got != vectorSignature {
		t.Errorf("signature %q, want %q", got, vectorSignature)
	}
	if got := h.Get("Claudeops-Timestamp"); got != strconv.Itoa(vectorSeconds) {
		t.Errorf("timestamp %q", got)
	}
}

func TestWithoutSecretNothingIsSigned(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	sign(h, "", time.Unix(vectorSeconds, 0), []byte(vectorBody))
	if _, signed := h[HeaderSignature]; signed || h.Get(HeaderTimestamp) == "" {
		t.Errorf("headers are %v", h)
	}
}
