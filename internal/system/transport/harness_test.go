package transport_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// token holds characters that each encoding writes differently.
const token = "s3cr3t/T0ken+that?must&not=show~up"

// bed is a server with faults in front, a transport to it and what that did.
type bed struct {
	*httpfault.Handler
	*transport.Transport
	srv    *httptest.Server
	client *http.Client
	log    *buffer
	mu     sync.Mutex
	slept  []time.Duration
}

// now is the injected clock's only time.
func now() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

// newBed serves next; change may alter the options, of which Base is the server's address.
func newBed(t *testing.T, next http.HandlerFunc, change ...func(*transport.Options)) *bed {
	t.Helper()
	b := &bed{Handler: httpfault.New(next), log: &buffer{}}
	b.srv = httptest.NewServer(b.Handler)
	t.Cleanup(b.srv.Close)
	b.connect(t, b.srv.URL, change...)
	return b
}

func (b *bed) connect(t *testing.T, base string, change ...func(*transport.Options)) {
	t.Helper()
	o := transport.Options{
		Name: "github", Variables: transport.Variables{Token: "GITHUB_TOKEN", Address: "GITHUB_API_URL"},
		Base: mustURL(t, base), Token: token, UserAgent: "claudeops-test",
		Clock: transport.Clock{
			Now: now,
			Sleep: func(_ context.Context, d time.Duration) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.slept = append(b.slept, d)
			},
			Jitter: func(ceiling time.Duration) time.Duration { return ceiling },
		},
		Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&o)
	}
	tr, err := transport.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.Transport, b.client = tr, tr.Client()
	t.Cleanup(tr.CloseIdleConnections)
}

// answer is the result of a request.
type answer struct {
	status int
	proto  int // major version
	header http.Header
	body   string
	fault  *fault.Error
}

// do sends a request; for a POST, PUT, PATCH or DELETE with a body.
func (b *bed) do(ctx context.Context, method, path string) answer {
	var body io.Reader
	if method != http.MethodGet && method != http.MethodHead {
		body = strings.NewReader("question")
	}
	req, err := http.NewRequestWithContext(ctx, method, b.srv.URL+path, body)
	if err != nil {
		return answer{fault: fault.From(err)}
	}
	return b.send(req)
}

func (b *bed) send(req *http.Request) answer {
	resp, err := b.client.Do(req)
	if err != nil {
		return answer{fault: b.Failure(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, proto: resp.ProtoMajor, header: resp.Header, body: string(body),
		fault: b.Failure(err)}
}

func (a answer) code() fault.Code {
	if a.fault == nil {
		return ""
	}
	return a.fault.Code
}

// hello answers 200 and what it was asked.
func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"asked":"`+r.Method+" "+string(body)+`","host":"`+r.Host+`"}`)
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// buffer is a bytes.Buffer that may be used concurrently.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
