package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// sentinel is a secret in every URL of these tests. It must be in no error.
const sentinel = "hunter2"

// only is the one sender of the settings.
func only(t *testing.T, s Settings, o SenderOptions) Sender {
	t.Helper()
	targets, problems := ParseTargets(s)
	senders := targets.Senders(o)
	if len(senders) != 1 {
		t.Fatalf("%d senders; problems %q", len(senders), problems)
	}
	return senders[0]
}

func delivery(t *testing.T) Delivery {
	t.Helper()
	return deliveryOf(t, openedMessage(), "webhook")
}

func deliveryOf(t *testing.T, m Message, target string) Delivery {
	t.Helper()
	_, d, err := decodeNotice(must.Get(notices(m, target))(t)[0].Payload)
	must.Do(t, err)
	return d
}

// failureFrom sends and wants a Failure without a secret.
func failureFrom(t *testing.T, ctx context.Context, s Sender) *deliveryFailure {
	t.Helper()
	err := s.Send(ctx, delivery(t))
	var f *deliveryFailure
	if !errors.As(err, &f) {
		t.Fatalf("Send gives %v, want a Failure", err)
	}
	if strings.Contains(f.Text, sentinel) || strings.Contains(f.Text, "echo") {
		t.Errorf("the error holds a secret or the answer: %s", f.Text)
	}
	return f
}

func TestAnswersOfAWebhook(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		status     int
		retryAfter string
		ok         bool
		permanent  bool
		wait       time.Duration
	}{
		{"200 is success", 200, "", true, false, 0},
		{"204 is success", 204, "", true, false, 0},
		{"299 is success", 299, "", true, false, 0},
		{"304 is none", 304, "", false, true, 0},
		{"400 will not change", 400, "", false, true, 0},
		{"401 will not change", 401, "60", false, true, 0},
		{"404 will not change", 404, "", false, true, 0},
		{"410 will not change", 410, "", false, true, 0},
		{"408 may change", 408, "", false, false, 0},
		{"425 may change", 425, "", false, false, 0},
		{"429 says when", 429, "120", false, false, 2 * time.Minute},
		{"429 by a date", 429, "Sat, 14 Mar 2026 11:01:40 GMT", false, false, 100 * time.Second},
		{"429 by a date that has passed", 429, "Sat, 14 Mar 2026 10:00:00 GMT", false, false, 0},
		{"429 says nonsense", 429, "-5", false, false, 0},
		{"429 says for ever", 429, "999999999", false, false, maxRetryAfter},
		{"500 may change", 500, "", false, false, 0},
		{"503 says when", 503, "30", false, false, 30 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.retryAfter != "" {
					w.Header().Set("Retry-After", tt.retryAfter)
				}
				w.WriteHeader(tt.status)
				if tt.status >= 400 {
					_, _ = io.WriteString(w, "echo "+sentinel)
				}
			}))
			defer server.Close()
			s := only(t, Settings{WebhookURL: server.URL + "/" + sentinel}, SenderOptions{
				Now: func() time.Time { return noon().Truncate(time.Second) },
			})
			if tt.ok {
				if err := s.Send(t.Context(), delivery(t)); err != nil {
					t.Errorf("Send gives %v", err)
				}
				return
			}
			f := failureFrom(t, t.Context(), s)
			if f.Permanent != tt.permanent || f.RetryAfter != tt.wait || f.Partial {
				t.Errorf("failure is %+v, want permanent %t and a wait of %s", f, tt.permanent, tt.wait)
			}
			named := "webhook (" + strings.TrimPrefix(server.URL, "http://") + ") answered"
			must.Contain(t, f.Text, named)
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		var elsewhere atomic.Int32
		thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
		server := httptest.NewServer(http.RedirectHandler(thief.URL+"/"+sentinel, status))
		f := failureFrom(t, t.Context(), only(t, Settings{WebhookURL: server.URL}, SenderOptions{}))
		if !f.Permanent || !strings.Contains(f.Text, "redirects are not followed") {
			t.Errorf("%d gives %+v", status, f)
		}
		if n := elsewhere.Load(); n != 0 {
			t.Errorf("%d was followed", status)
		}
		server.Close()
		thief.Close()
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	stall := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select { // until the client has gone
		case <-r.Context().Done():
		case <-release:
		}
	}
	var acted atomic.Int32
	drop := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		acted.Add(1)
		panic(http.ErrAbortHandler)
	}
	plain := httptest.NewServer(http.HandlerFunc(stall))
	defer plain.Close()
	dropping := httptest.NewServer(http.HandlerFunc(drop))
	defer dropping.Close()
	untrustedTLS := httptest.NewUnstartedServer(http.HandlerFunc(stall))
	untrustedTLS.Config.ErrorLog = discardLog()
	untrustedTLS.StartTLS()
	defer untrustedTLS.Close()
	defer close(release)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()

	tests := []struct {
		name, url, want string
		ctx             context.Context
		timeout         time.Duration
	}{
		{"one that stalls", plain.URL, "did not answer in time", t.Context(), 50 * time.Millisecond},
		{"one that acts and drops the connection", dropping.URL, "dropped the connection", t.Context(), 0},
		{"one that is not there", httpfault.NoListener, "refused the connection", t.Context(), 0},
		{"one whose certificate nobody vouches for", untrustedTLS.URL, "not trusted", t.Context(), 0},
		{"one that does not speak TLS", "https" + strings.TrimPrefix(plain.URL, "http"), "does not speak TLS", t.Context(),
			0},
		{"one that is not waited for", plain.URL, "this program is ending", cancelled, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := only(t, Settings{WebhookURL: tt.url + "/" + sentinel}, SenderOptions{Timeout: tt.timeout})
			f := failureFrom(t, tt.ctx, s)
			if f.Permanent || !strings.Contains(f.Text, tt.want) {
				t.Errorf("failure is %+v, want %q", f, tt.want)
			}
		})
	}
	if n := acted.Load(); n != 1 {
		t.Errorf("the server that drops acted %d times for one attempt", n)
	}
}

func TestABodyThatNeverEndsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // the client closes the connection
	}))
	defer server.Close()
	if err := only(t, Settings{WebhookURL: server.URL}, SenderOptions{}).Send(t.Context(), delivery(t)); err != nil {
		t.Errorf("Send gives %v", err)
	}
}

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
	want := must.Get(marshal(openedMessage()))(t)
	var ids []string
	for range 2 {
		must.Do(t, s.Send(t.Context(), d))
		got := <-requests
		if got.method != http.MethodPost || got.path != "/hook?a=b" ||
			got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v", got.method, got.path, got.header)
		}
		if !bytes.Equal(got.body, want) {
			t.Errorf("body\n%s\nwant\n%s", got.body, want)
		}
		must.Equal(t, got.header.Get("Claudeops-Event"), "opened")
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
	id := func(m Message, target string) string { return deliveryOf(t, m, target).ID }
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
	must.Equal(t, h.Get("Claudeops-Signature"), vectorSignature)
	must.Equal(t, h.Get("Claudeops-Timestamp"), strconv.Itoa(vectorSeconds))
}

func TestWithoutSecretNothingIsSigned(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	sign(h, "", time.Unix(vectorSeconds, 0), []byte(vectorBody))
	if _, signed := h[HeaderSignature]; signed || h.Get(HeaderTimestamp) == "" {
		t.Errorf("headers are %v", h)
	}
}
