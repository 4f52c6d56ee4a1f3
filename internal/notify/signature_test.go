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

func TestVerify(t *testing.T) {
	t.Parallel()
	at := time.Unix(vectorSeconds, 0)
	with := func(name, value string) http.Header {
		h := signedHeader()
		h.Set(name, value)
		return h
	}
	tests := []struct {
		name, secret, body string
		header             http.Header
		now                time.Time
		ok                 bool
	}{
		{"what was signed", vectorSecret, vectorBody, signedHeader(), at, true},
		{"five minutes later", vectorSecret, vectorBody, signedHeader(), at.Add(Tolerance), true},
		{"five minutes before", vectorSecret, vectorBody, signedHeader(), at.Add(-Tolerance), true},
		{"too late", vectorSecret, vectorBody, signedHeader(), at.Add(Tolerance + time.Second), false},
		{"too early", vectorSecret, vectorBody, signedHeader(), at.Add(-Tolerance - time.Second), false},
		{"another secret", vectorSecret + "x", vectorBody, signedHeader(), at, false},
		{"no secret", "", vectorBody, signedHeader(), at, false},
		{"another body", vectorSecret, `{"a":2}`, signedHeader(), at, false},
		{"another timestamp", vectorSecret, vectorBody, with(HeaderTimestamp, strconv.Itoa(vectorSeconds+1)), at, false},
		{"no timestamp", vectorSecret, vectorBody, with(HeaderTimestamp, ""), at, false},
		{"no signature", vectorSecret, vectorBody, with(HeaderSignature, ""), at, false},
		{"an empty signature", vectorSecret, vectorBody, with(HeaderSignature, "v1="), at, false},
		{"another version", vectorSecret, vectorBody, with(HeaderSignature, "v0"+vectorSignature[2:]), at, false},
		{"a signature that is no hex", vectorSecret, vectorBody, with(HeaderSignature, "v1=zz"), at, false},
		{"half a signature", vectorSecret, vectorBody, with(HeaderSignature, vectorSignature[:35]), at, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := Verify(tt.secret, tt.header, []byte(tt.body), tt.now); (err == nil) != tt.ok {
				t.Errorf("Verify gives %v", err)
			}
		})
	}
}
