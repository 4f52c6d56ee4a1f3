package notify

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// request is a request that a server received.
type request struct {
	method, path string
	header       http.Header
	body         []byte
}

// recorder answers every request with status and hands it to the test.
func recorder(t *testing.T, status int) (url string, got <-chan request) {
	t.Helper()
	requests := make(chan request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- request{r.Method, r.URL.String(), r.Header, body}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestWebhookSendsWhatItDocuments(t *testing.T) {
	t.Parallel()
	url, requests := recorder(t, http.StatusNoContent)
	now := noon()
	const secret = "0123456789abcdef"
	s := only(t, Settings{WebhookURL: url + "/hook?a=b", WebhookSecret: secret},
		SenderOptions{Now: func() time.Time { return now }})
	if s.Name() != "webhook" {
		t.Errorf("name %q", s.Name())
	}
	d := delivery(t)
	want, err := marshal(openedMessage())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 2 {
		if err := s.Send(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		got := <-requests
		if got.method != http.MethodPost || got.path != "/hook?a=b" ||
			got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v", got.method, got.path, got.header)
		}
		if !bytes.Equal(got.body, want) {
			t.Errorf("body\n%s\nwant\n%s", got.body, want)
		}
		if event := got.header.Get("Claudeops-Event"); event != "opened" {
			t.Errorf("event %q", event)
		}
		mac := hmac.New(sha256.New, []byte(secret)) // as docs/guides/notifications.md has it
		fmt.Fprintf(mac, "%d.%s", now.Unix(), got.body)
		if signed := got.header.Get("Claudeops-Signature"); signed != fmt.Sprintf("v1=%x", mac.Sum(nil)) ||
			got.header.Get("Claudeops-Timestamp") != fmt.Sprint(now.Unix()) {
			t.Errorf("signed %s at %s", signed, got.header.Get("Claudeops-Timestamp"))
		}
		ids = append(ids, got.header.Get("Claudeops-Delivery"))
		now = now.Add(time.Hour) // the second attempt has its own timestamp
	}
	if len(ids[0]) != 32 || ids[0] != ids[1] {
		t.Errorf("delivery ids are %q, want the same 32 digits twice", ids)
	}
}

func TestDeliveryIDsDiffer(t *testing.T) {
	t.Parallel()
	id := func(m Message, target string) string {
		made, err := notices(m, target)
		if err != nil {
			t.Fatal(err)
		}
		_, d, err := open(made[0].Payload)
		if err != nil {
			t.Fatal(err)
		}
		return d.ID
	}
	base := openedMessage()
	later, other, merged := base, base, base
	later.Time = later.Time.Add(time.Millisecond)
	other.RequestID = "01JQ81"
	merged.Event = "merged"
	seen := map[string]bool{
		id(base, "webhook"): true, id(base, "webhook-2"): true, id(later, "webhook"): true, id(other, "webhook"): true,
		id(merged, "webhook"): true,
	}
	if len(seen) != 5 || !seen[id(base, "webhook")] {
		t.Errorf("five deliveries have %d ids", len(seen))
	}
}

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
