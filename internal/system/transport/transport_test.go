package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
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

func TestNewRefusesWhatWouldEndanger(t *testing.T) {
	tests := []struct {
		name  string
		base  string
		token string
		plain bool
		says  string // "" is accepted
	}{
		{"https", "https://api.example.test/v3", "t0ken", false, ""},
		{"plain http to this machine", "http://127.0.0.1:3000/git", "t0ken", false, ""},
		{"plain http to this machine by IPv6", "http://[::1]:3000", "t0ken", false, ""},
		{"plain http to this machine by name", "http://LocalHost:3000", "t0ken", false, ""},
		{"plain http to a network that was allowed", "http://gitea.lan", "t0ken", true, ""},
		{"plain http to a network", "http://gitea.lan", "t0ken", false, "GITEA_URL is plain http"},
		{"a name that only begins like this machine's", "http://localhost.example.test", "t0ken", false,
			"GITEA_URL is plain http"},
		{"another scheme", "ftp://gitea.lan", "", true, "GITEA_URL is not an address"},
		{"no host", "https:///api", "", false, "GITEA_URL is not an address"},
		{"a path only", "/api", "", false, "GITEA_URL is not an address"},
		{"opaque", "https:gitea.lan", "", false, "GITEA_URL is not an address"},
		{"a password", "https://joe:sesame@gitea.lan", "", false, "GITEA_URL holds a user name or password"},
		{"a query", "https://gitea.lan/?token=sesame", "", false, "GITEA_URL has a query"},
		{"a line break in the token", "https://gitea.lan", "sesame\n", false, "GITEA_TOKEN holds"},
		{"a token beyond ASCII", "https://gitea.lan", "sesamé", false, "GITEA_TOKEN holds"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := transport.New(transport.Options{
				Name: "gitea", Variables: transport.Variables{Token: "GITEA_TOKEN", Address: "GITEA_URL"},
				Base: mustURL(t, tt.base), Token: tt.token, Network: transport.Network{AllowPlainHTTP: tt.plain},
			})
			if tt.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if fault.CodeOf(err) != fault.ProviderDisabled || !strings.Contains(err.Error(), tt.says) ||
				strings.Contains(err.Error(), "sesam") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := transport.New(transport.Options{}); fault.CodeOf(err) != fault.ProviderDisabled {
		t.Errorf("no base: %v", err)
	}
}

func TestURLKeepsEachSegmentOne(t *testing.T) {
	tests := []struct {
		name     string
		base     string
		segments []string
		want     string
	}{
		{"plain names", "https://h", []string{"repos", "joe", "home"}, "https://h/repos/joe/home"},
		{"a base below a path", "https://h/git/", []string{"api", "v1"}, "https://h/git/api/v1"},
		{"a base with escapes", "https://h/a%2Fb", []string{"c"}, "https://h/a%2Fb/c"},
		{"a slash in a segment", "https://h", []string{"branches", "claude-ops/fix/a"},
			"https://h/branches/claude-ops%2Ffix%2Fa"},
		{"segments that would move", "https://h/x", []string{"..", ".", "..."}, "https://h/x/%2E%2E/%2E/..."},
		{"moves inside a segment", "https://h/x", []string{"../../etc"}, "https://h/x/..%2F..%2Fetc"},
		{"an escape in a segment", "https://h", []string{"a%2Fb"}, "https://h/a%252Fb"},
		{"the end of a path in a segment", "https://h", []string{"a?b#c"}, "https://h/a%3Fb%23c"},
		{"a space, a plus and letters", "https://h", []string{"a b+ü"}, "https://h/a%20b+%C3%BC"},
		{"a segment like a scheme", "https://h", []string{"https://evil.test"}, "https://h/https:%2F%2Fevil.test"},
		{"an empty last segment", "https://h", []string{"a", ""}, "https://h/a/"},
		{"no segment", "https://h/a/", nil, "https://h/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := transport.URL(mustURL(t, tt.base), tt.segments...)
			if got.String() != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if again, err := url.Parse(got.String()); err != nil || again.EscapedPath() != got.EscapedPath() {
				t.Errorf("%s does not survive being written and read", got)
			}
		})
	}
}

func TestAnEscapedPathArrivesAsItWasMade(t *testing.T) {
	b := newBed(t, hello)
	u := transport.URL(mustURL(t, b.srv.URL), "..", "a/b", "c")
	req, _ := http.NewRequestWithContext(t.Context(), "GET", u.String(), nil)
	if got := b.send(req); got.status != 200 || b.Requests()[0].Path != "/%2E%2E/a%2Fb/c" {
		t.Errorf("got %v, path %s", got.fault, b.Requests()[0].Path)
	}
}

func TestSleepEndsWithTheTimeOrTheContext(t *testing.T) {
	clock := transport.Clock{}.WithDefaults()
	clock.Sleep(t.Context(), time.Nanosecond)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	clock.Sleep(ended, 24*time.Hour)
}

func TestEachRequestIsObservedOnceHoweverOftenItIsTried(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	status := func(n int) httpfault.Fault { return httpfault.Fault{Kind: httpfault.Status, Status: n} }
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		method string
		faults []httpfault.Fault
		want   string
	}{
		{"an answer", t.Context(), "GET", nil, "2xx 1s"},
		{"an answer at the second try", t.Context(), "GET", []httpfault.Fault{{Kind: httpfault.ResetBefore}}, "2xx 1s"},
		{"a refusal", t.Context(), "POST", []httpfault.Fault{status(422)}, "4xx 1s"},
		{"a redirect to nowhere", t.Context(), "POST", []httpfault.Fault{status(304)}, "3xx 1s"},
		{"a failure", t.Context(), "POST", []httpfault.Fault{status(500)}, "5xx 1s"},
		{"a connection that broke", t.Context(), "POST", []httpfault.Fault{{Kind: httpfault.ResetAfter}},
			"upstream_error 1s"},
		{"a caller who went away", cancelled, "GET", nil, "timeout 1s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			var read atomic.Int64 // each look at the clock finds it a second later
			b := newBed(t, hello, func(o *transport.Options) {
				o.Clock.Now = func() time.Time { return time.Unix(min(read.Add(1), 2), 0) }
				o.Observe = func(outcome string, took time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, outcome+" "+took.String())
				}
			})
			for _, f := range tt.faults {
				b.Plan(func(*http.Request) bool { return true }, f)
			}
			b.do(tt.ctx, tt.method, "/")
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(seen, ", "); got != tt.want {
				t.Errorf("observed %s, want %s", got, tt.want)
			}
		})
	}
}

// gzipped answers so many bytes, which compress to almost nothing.
func gzipped(size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(strings.Repeat("x", size)))
		_ = z.Close()
	}
}

// hold answers nothing until the client goes away, and tells when it was asked.
func hold(asked chan<- string) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-r.Context().Done()
	}
}

func cancelled(t *testing.T, got answer) {
	t.Helper()
	if got.code() != fault.Timeout || !errors.Is(got.fault, context.Canceled) ||
		!strings.Contains(got.fault.Message, "cancelled") {
		t.Errorf("got %d %v", got.status, got.fault)
	}
}

func TestACancelledCallEndsInEachPhase(t *testing.T) {
	t.Run("before it begins", func(t *testing.T) {
		b := newBed(t, hello)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, method := range []string{"GET", "POST"} {
			cancelled(t, b.do(ctx, method, "/"))
		}
		if n := len(b.Requests()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("in the TLS handshake", func(t *testing.T) {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		b := newBed(t, hello)
		b.connect(t, "https://"+listener.Addr().String())
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if conn, err := listener.Accept(); err == nil {
				cancel()
				_, _ = conn.Read(make([]byte, 1<<16))
			}
		}()
		req, _ := http.NewRequestWithContext(ctx, "POST", "https://"+listener.Addr().String(), nil)
		cancelled(t, b.send(req))
	})
	t.Run("before the header", func(t *testing.T) {
		asked := make(chan string, 1)
		b := newBed(t, hold(asked))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		cancelled(t, b.do(ctx, "GET", "/"))
	})
	t.Run("inside the body", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			cancel()
			<-r.Context().Done()
		})
		cancelled(t, b.do(ctx, "POST", "/"))
	})
	t.Run("between two tries", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := newBed(t, hello, func(o *transport.Options) {
			o.Clock.Sleep = func(context.Context, time.Duration) { cancel() }
		})
		b.Plan(nil, httpfault.Fault{Kind: httpfault.ResetBefore})
		cancelled(t, b.do(ctx, "GET", "/"))
		if n := len(b.Requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("in the pause between two writes", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := newBed(t, hello, func(o *transport.Options) {
			o.Limits.WritePause = time.Second
			o.Clock.Sleep = func(context.Context, time.Duration) { cancel() }
		})
		if got := b.do(ctx, "POST", "/"); got.status != 200 {
			t.Fatal(got.fault)
		}
		cancelled(t, b.do(ctx, "POST", "/"))
		if got := b.do(t.Context(), "POST", "/"); got.status != 200 { // the turn was given back
			t.Error(got.fault)
		}
	})
}

// waiting occupies the transport with one request and returns how to end it.
func waiting(t *testing.T, b *bed, asked <-chan string, method string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.do(ctx, method, "/first") })
	<-asked
	return func() { cancel(); wg.Wait() }
}

func TestACancelledCallStopsWaitingForOthers(t *testing.T) {
	for method, name := range map[string]string{"POST": "for the writer's turn", "GET": "for a free slot"} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 10)
			b := newBed(t, hold(asked), func(o *transport.Options) {
				o.Limits.MaxConcurrent = map[string]int{"POST": 8, "GET": 1}[method]
			})
			end := waiting(t, b, asked, method)
			defer end()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			got := b.do(ctx, method, "/second")
			if got.code() != fault.Timeout || !errors.Is(got.fault, context.DeadlineExceeded) || len(b.Requests()) != 1 {
				t.Errorf("got %v after %d requests", got.fault, len(b.Requests()))
			}
		})
	}
}

func TestReadsDoNotWaitForAWrite(t *testing.T) {
	asked := make(chan string, 10)
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			hold(asked)(w, r)
		}
	})
	end := waiting(t, b, asked, "POST")
	defer end()
	if got := b.do(t.Context(), "GET", "/"); got.status != 200 {
		t.Error(got.fault)
	}
	if got := b.do(transport.Safe(t.Context()), "POST", "/"); got.status != 200 {
		t.Error(got.fault)
	}
}

func TestAtMostSoManyRequestsAndOneWriteAtOnce(t *testing.T) {
	var reads, writes, mostReads, mostWrites atomic.Int32
	count := func(n, most *atomic.Int32) func() {
		for now := n.Add(1); ; {
			if was := most.Load(); now <= was || most.CompareAndSwap(was, now) {
				return func() { n.Add(-1) }
			}
		}
	}
	b := newBed(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			defer count(&writes, &mostWrites)()
		}
		defer count(&reads, &mostReads)()
		for range 1000 { // some work, so that requests would meet if they could
			_ = strings.Repeat("x", 1000)
		}
	}, func(o *transport.Options) { o.Limits.MaxConcurrent = 3 })
	b.SetLatency(time.Millisecond)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if got := b.do(t.Context(), []string{"GET", "POST"}[i%2], "/"); got.status != 200 {
				t.Error(got.fault)
			}
		})
	}
	wg.Wait()
	if mostReads.Load() > 3 || mostWrites.Load() != 1 {
		t.Errorf("%d requests and %d writes at once", mostReads.Load(), mostWrites.Load())
	}
}

func TestWritesKeepThePauseThatIsAskedFor(t *testing.T) {
	b := newBed(t, hello, func(o *transport.Options) { o.Limits.WritePause = time.Second })
	for _, method := range []string{"POST", "GET", "POST"} {
		if got := b.do(t.Context(), method, "/"); got.status != 200 {
			t.Fatal(got.fault)
		}
	}
	if len(b.slept) != 1 || b.slept[0] != time.Second {
		t.Errorf("slept %v", b.slept)
	}
}
