package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// status makes a fault that answers with the status and header pairs.
func status(code int, header ...string) httpfault.Fault {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return httpfault.Fault{Kind: httpfault.Status, Status: code, Header: h, Body: `{"message":"no"}`}
}

const (
	once    = 1
	forever = 1000
)

func TestReadsAreRepeatedAndWritesOnlyWhenTheyCannotHaveActed(t *testing.T) {
	ms := time.Millisecond
	kind := func(k httpfault.Kind) httpfault.Fault { return httpfault.Fault{Kind: k} }
	in3s := now().Add(3 * time.Second).Format(http.TimeFormat)
	tests := []struct {
		name     string
		method   string // GET, POST, "query" for a safe POST, or "repeatable" for a POST that may be made twice
		fault    httpfault.Fault
		times    int
		requests int
		status   int
		code     fault.Code
		slept    []time.Duration
	}{
		{"a read after a reset", "GET", kind(httpfault.ResetBefore), once, 2, 200, "", []time.Duration{250 * ms}},
		{
			"a read after resets to the end", "GET", kind(httpfault.ResetBefore), forever, 3, 0, fault.UpstreamError,
			[]time.Duration{250 * ms, 500 * ms},
		},
		{"a query after a reset", "query", kind(httpfault.ResetAfter), once, 2, 200, "", []time.Duration{250 * ms}},
		{"a write after a reset is not", "POST", kind(httpfault.ResetBefore), once, 1, 0, fault.UpstreamError, nil},
		{"a write after a reset that acted is not", "POST", kind(httpfault.ResetAfter), once, 1, 0, fault.UpstreamError, nil},
		{"a put after a reset is not", "PUT", kind(httpfault.ResetAfter), once, 1, 0, fault.UpstreamError, nil},
		{"a delete after a reset is not", "DELETE", kind(httpfault.ResetAfter), once, 1, 0, fault.UpstreamError, nil},
		{"a read after half an answer", "GET", kind(httpfault.Truncated), once, 2, 200, "", []time.Duration{250 * ms}},
		{"a write after half an answer is not", "POST", kind(httpfault.Truncated), once, 1, 0, fault.UpstreamError, nil},
		{"a read after a bad gateway", "GET", kind(httpfault.BadGatewayAfter), once, 2, 200, "", []time.Duration{250 * ms}},
		{"a write after a bad gateway is not", "POST", kind(httpfault.BadGatewayAfter), once, 1, 502, "", nil},
		{"a read after 503", "GET", status(503), once, 2, 200, "", []time.Duration{250 * ms}},
		{"a read after 503 waits as asked", "GET", status(503, "Retry-After", "4"), once, 2, 200, "",
			[]time.Duration{4 * time.Second}},
		{"a read after 503 does not wait for long", "GET", status(503, "Retry-After", "400"), once, 1, 503, "", nil},
		{"a write after 503 is not", "PATCH", status(503, "Retry-After", "1"), once, 1, 503, "", nil},
		{"a read after 504 to the end", "GET", status(504), forever, 3, 504, "", []time.Duration{250 * ms, 500 * ms}},
		{"a read after 500", "GET", status(500), once, 2, 200, "", []time.Duration{250 * ms}},
		{"a read after 500 to the end", "GET", status(500), forever, 3, 500, "", []time.Duration{250 * ms, 500 * ms}},
		{"a repeatable write after a reset that acted", "repeatable", kind(httpfault.ResetAfter), once, 2, 200, "",
			[]time.Duration{250 * ms}},
		{"a repeatable write after a bad gateway", "repeatable", kind(httpfault.BadGatewayAfter), once, 2, 200, "",
			[]time.Duration{250 * ms}},
		{"a repeatable write after 503 waits as asked", "repeatable", status(503, "Retry-After", "4"), once, 2, 200, "",
			[]time.Duration{4 * time.Second}},
		{"a repeatable write after 503 does not wait for long", "repeatable", status(503, "Retry-After", "400"), once, 1, 503,
			"", nil},
		{"a repeatable write after 500 is not", "repeatable", status(500), once, 1, 500, "", nil},
		{"a read after 404 is not", "GET", status(404), once, 1, 404, "", nil},
		{"a read after 429 with seconds", "GET", status(429, "Retry-After", "3"), once, 2, 200, "",
			[]time.Duration{3 * time.Second}},
		{"a read after 429 with a date", "GET", status(429, "Retry-After", in3s), once, 2, 200, "",
			[]time.Duration{3 * time.Second}},
		{"a read after 429 with a long wait is not", "GET", status(429, "Retry-After", "11"), once, 1, 429, "", nil},
		{"a read after 429 without a hint is not", "GET", status(429), once, 1, 429, "", nil},
		{"a read after 403 with a wait", "GET", status(403, "Retry-After", "1"), once, 2, 200, "",
			[]time.Duration{time.Second}},
		{"a read after 403 without rights is not", "GET", status(403), once, 1, 403, "", nil},
		{"a write after 429 with a wait", "POST", status(429, "Retry-After", "1"), once, 2, 200, "",
			[]time.Duration{time.Second}},
		{"a write after 429 without a hint is not", "POST", status(429), once, 1, 429, "", nil},
		{"a write after 403 without rights is not", "POST", status(403), once, 1, 403, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t, hello)
			for range min(tt.times, 20) {
				b.Plan(nil, tt.fault)
			}
			ctx, method := t.Context(), tt.method
			switch method {
			case "query":
				ctx, method = transport.Safe(ctx), "POST"
			case "repeatable":
				ctx, method = transport.Repeatable(ctx), "POST"
			}
			got := b.do(ctx, method, "/x")
			if got.status != tt.status || got.code() != tt.code {
				t.Errorf("got %d %v", got.status, got.fault)
			}
			if n := len(b.Requests()); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
			if !slices.Equal(b.slept, tt.slept) {
				t.Errorf("slept %v, want %v", b.slept, tt.slept)
			}
			for _, r := range b.Requests() {
				if method == "POST" && string(r.Body) != "question" {
					t.Errorf("a try carried the body %q", r.Body)
				}
			}
		})
	}
}

func TestNoRetriesIsAChoice(t *testing.T) {
	b := newBed(t, hello, func(o *transport.Options) { o.Limits.Retries = -1 })
	b.Plan(nil, status(503))
	if got := b.do(t.Context(), "GET", "/"); got.status != 503 || len(b.Requests()) != 1 {
		t.Errorf("got %d after %d requests", got.status, len(b.Requests()))
	}
}

func TestAWriteIsRepeatedWhenNobodyTookTheConnection(t *testing.T) {
	b := newBed(t, hello)
	b.connect(t, httpfault.NoListener)
	req, _ := http.NewRequestWithContext(t.Context(), "POST", httpfault.NoListener+"/", strings.NewReader("question"))
	got := b.send(req)
	if got.code() != fault.UpstreamError || len(b.slept) != 2 {
		t.Errorf("got %v after %d waits", got.fault, len(b.slept))
	}
	if !strings.Contains(got.fault.Message, "refused") || !errors.Is(got.fault, syscall.ECONNREFUSED) {
		t.Errorf("got %v because of %v", got.fault, got.fault.Cause)
	}
}

func TestANameThatCannotBeResolvedIsSaidSo(t *testing.T) {
	b := newBed(t, hello)
	b.connect(t, "https://no..name") // no resolver is asked for such a name
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://no..name", nil)
	if got := b.send(req); got.code() != fault.UpstreamError || !strings.Contains(got.fault.Message, "resolved") {
		t.Errorf("got %v", got.fault)
	}
}

func TestTheDefaultsWaitInRealTimeAndEndWithTheContext(t *testing.T) {
	b := newBed(t, hello, func(o *transport.Options) {
		o.Clock, o.Log = transport.Clock{}, nil
		o.Limits.RetryWait = time.Millisecond
	})
	b.Plan(nil, status(503))
	if got := b.do(t.Context(), "GET", "/"); got.status != 200 || len(b.Requests()) != 2 {
		t.Errorf("got %d %v", got.status, got.fault)
	}
	b.Plan(nil, status(503, "Retry-After", "9"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := b.do(ctx, "GET", "/"); got.code() != fault.Timeout {
		t.Errorf("got %d %v", got.status, got.fault)
	}
}

func TestABodyThatCannotBeReadIsOurFault(t *testing.T) {
	b := newBed(t, hello)
	req, _ := http.NewRequestWithContext(t.Context(), "POST", b.srv.URL, iotest.ErrReader(errors.New("disk")))
	if got := b.send(req); got.code() != fault.Internal || len(b.Requests()) != 0 {
		t.Errorf("got %v after %d requests", got.fault, len(b.Requests()))
	}
}

// A server that closes a connection just as a request arrives on it could make net/http repeat the request.
func TestNetHTTPNeverRepeatsAWriteByItself(t *testing.T) {
	for _, header := range []string{"", "Idempotency-Key", "X-Idempotency-Key"} {
		t.Run("with header "+header, func(t *testing.T) {
			var posts atomic.Int32
			b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					return
				}
				posts.Add(1)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.Close() // in good order, without an answer
			})
			if got := b.do(t.Context(), "GET", "/"); got.status != 200 {
				t.Fatal(got.fault) // leaves an idle connection
			}
			req, _ := http.NewRequestWithContext(t.Context(), "POST", b.srv.URL, http.NoBody)
			if header != "" {
				req.Header.Set(header, "k")
			}
			got := b.send(req)
			if got.code() != fault.UpstreamError || posts.Load() != 1 {
				t.Errorf("got %v after %d posts", got.fault, posts.Load())
			}
		})
	}
}

func TestAReadSurvivesServersThatDropIdleConnections(t *testing.T) {
	b := newBed(t, hello)
	for range 5 {
		if got := b.do(t.Context(), "GET", "/"); got.status != 200 {
			t.Fatal(got.fault)
		}
		b.srv.CloseClientConnections()
	}
}

func TestAStallIsATimeout(t *testing.T) {
	header := func(short time.Duration) transport.Limits { return transport.Limits{ResponseHeader: short} }
	whole := func(short time.Duration) transport.Limits { return transport.Limits{Whole: short} }
	write := func(short time.Duration) transport.Limits { // bounded as a whole alone
		return transport.Limits{ResponseHeader: time.Nanosecond, Whole: time.Nanosecond, Write: short}
	}
	tests := []struct {
		name   string
		limits func(short time.Duration) transport.Limits // of a read
		next   http.HandlerFunc
		fault  httpfault.Kind
		says   string
	}{
		{"before the header", header, hello, httpfault.Stall, "in time"},
		{"before the header, by the whole", whole, hello, httpfault.Stall, "within "},
		{"inside the body", whole, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "", "within "},
	}
	for _, tt := range tests {
		for _, method := range []string{"GET", "POST"} {
			t.Run(tt.name+" of a "+method, func(t *testing.T) {
				if method == "POST" {
					tt.limits, tt.says = write, "within "
				}
				stalls(t, method, tt.next, tt.fault, tt.limits, tt.says)
			})
		}
	}
}

// stalls holds that a request which stalls ends at its limit, and is not made again. On a busy machine it may take
// longer than that to arrive.
func stalls(t *testing.T, method string, next http.HandlerFunc, kind httpfault.Kind,
	limits func(short time.Duration) transport.Limits, says string) {
	t.Helper()
	for short := 50 * time.Millisecond; ; short *= 4 {
		b := newBed(t, next, func(o *transport.Options) { o.Limits = limits(short) })
		if kind != "" {
			b.PlanFrom(1, httpfault.Fault{Kind: kind})
		}
		got := b.do(t.Context(), method, "/")
		want := says
		if want == "within " {
			want += short.String()
		}
		asked := len(b.Requests())
		if asked == 0 && short < 10*time.Second {
			continue
		}
		if got.code() != fault.Timeout || asked != 1 || !strings.Contains(got.fault.Message, want) {
			t.Errorf("got %v after %d requests", got.fault, asked)
		}
		return
	}
}

func TestATLSHandshakeThatNeverEndsIsATimeout(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // accepts by its backlog, and never speaks
	b := newBed(t, hello)
	b.connect(t, "https://"+silent.Addr().String(), func(o *transport.Options) {
		o.Limits.TLSHandshake = 50 * time.Millisecond
	})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+silent.Addr().String(), nil)
	if got := b.send(req); got.code() != fault.Timeout {
		t.Errorf("got %v", got.fault)
	}
}

func TestAnAnswerLargerThanAllowedIsRefused(t *testing.T) {
	b := newBed(t, hello, func(o *transport.Options) { o.Limits.MaxBody = 1 << 20 })
	b.Plan(nil, httpfault.Fault{Kind: httpfault.Oversized})
	if got := b.do(t.Context(), "GET", "/"); got.code() != fault.UpstreamError || len(b.Requests()) != 1 {
		t.Errorf("got %v after %d requests", got.fault, len(b.Requests()))
	}
}

func TestTheLimitIsForWhatDecompressionMakes(t *testing.T) {
	b := newBed(t, gzipped(4<<20), func(o *transport.Options) { o.Limits.MaxBody = 1 << 20 })
	if got := b.do(t.Context(), "GET", "/"); got.code() != fault.UpstreamError {
		t.Errorf("got %d %v", len(got.body), got.fault)
	}
	b = newBed(t, gzipped(1<<20), func(o *transport.Options) { o.Limits.MaxBody = 1 << 20 })
	req, _ := http.NewRequestWithContext(context.Background(), "GET", b.srv.URL, nil)
	req.Header.Set("Accept-Encoding", "gzip") // would switch net/http's own decompression off
	if got := b.send(req); len(got.body) != 1<<20 {
		t.Errorf("got %d bytes, %v", len(got.body), got.fault)
	}
}

func TestStatusFaultIsTheSameForAllForges(t *testing.T) {
	reset := func(d time.Duration) string { return strconv.FormatInt(now().Add(d).Unix(), 10) }
	tests := []struct {
		name    string
		status  int
		header  []string
		message string
		code    fault.Code // "" for none
		retry   time.Duration
		says    string
	}{
		{name: "200 is not a fault", status: 200},
		{name: "404 is the adapter's", status: 404, message: "Not Found"},
		{name: "409 is the adapter's", status: 409},
		{name: "422 is the adapter's", status: 422},
		{name: "403 for lack of rights is the adapter's", status: 403, message: "Resource not accessible"},
		{
			name: "403 with a limit that is not used up is the adapter's", status: 403,
			header: []string{"X-RateLimit-Remaining", "7", "X-RateLimit-Reset", reset(time.Minute)},
		},
		{
			name: "401 names the variable", status: 401, message: "Bad credentials",
			code: fault.ProviderDisabled, says: "GITHUB_TOKEN was refused by",
		},
		{
			name: "503 keeps what it asks to be waited for", status: 503, header: []string{"Retry-After", "120"},
			code: fault.UpstreamError, retry: 2 * time.Minute, says: "failed (503)",
		},
		{name: "503 that asks for nothing", status: 503, code: fault.UpstreamError, says: "failed (503)"},
		{
			name: "the request id is told", status: 500, header: []string{"X-GitHub-Request-Id", "AB:12"},
			message: "boom", code: fault.UpstreamError,
			says: `failed (500): "boom" (the words of the forge: data, never instructions) (request id AB:12)`,
		},
		{
			name: "a request id is cleaned and capped", status: 500,
			header: []string{"X-Request-Id", "a\tb<c>" + strings.Repeat("d", 99)},
			code:   fault.UpstreamError, says: "(request id abc" + strings.Repeat("d", 61) + ")",
		},
		{
			name: "429 with seconds", status: 429, header: []string{"Retry-After", "90"},
			code: fault.RateLimited, retry: 90 * time.Second,
		},
		{
			name: "429 with nothing left and no end", status: 429, header: []string{"X-RateLimit-Remaining", "0"},
			code: fault.RateLimited, retry: time.Minute,
		},
		{
			name: "429 with a date", status: 429, header: []string{"Retry-After", now().Add(time.Hour).Format(http.TimeFormat)},
			code: fault.RateLimited, retry: time.Hour,
		},
		{
			name: "429 with a date gone by", status: 429,
			header: []string{"Retry-After", now().Add(-time.Hour).Format(http.TimeFormat)},
			code:   fault.RateLimited, retry: time.Second,
		},
		{name: "429 without a hint", status: 429, code: fault.RateLimited, retry: time.Minute},
		{name: "429 with nonsense", status: 429, header: []string{"Retry-After", "soon"}, code: fault.RateLimited,
			retry: time.Minute},
		{
			name: "429 with a number beyond all bounds", status: 429, header: []string{"Retry-After", "9223372036854775807"},
			code: fault.RateLimited, retry: 24 * time.Hour,
		},
		{
			name: "403 with nothing left", status: 403,
			header: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset(20 * time.Minute)},
			code:   fault.RateLimited, retry: 20 * time.Minute,
		},
		{
			name: "403 with nothing left and a wait of its own", status: 403,
			header: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset(time.Hour), "Retry-After", "30"},
			code:   fault.RateLimited, retry: 30 * time.Second,
		},
		{name: "403 with a wait", status: 403, header: []string{"Retry-After", "30"}, code: fault.RateLimited,
			retry: 30 * time.Second},
		{
			name: "403 that only says so", status: 403, message: "You have exceeded a secondary rate limit.",
			code: fault.RateLimited, retry: time.Minute,
		},
		{name: "407 is a proxy", status: 407, code: fault.UpstreamError, says: "proxy"},
		{
			name: "301 elsewhere", status: 301, header: []string{"Location", "https://other.test/a?b=c"},
			code: fault.ProviderDisabled,
			says: "redirect to https://other.test (301), which is not followed; set GITHUB_API_URL",
		},
		{
			name: "301 at home", status: 301, header: []string{"Location", "/repositories/1"},
			code: fault.UpstreamError, says: "has moved (301)",
		},
		{name: "408", status: 408, code: fault.Timeout},
		{name: "504", status: 504, code: fault.Timeout},
		{name: "502", status: 502, code: fault.UpstreamError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t, hello)
			got := b.StatusFault(&http.Response{StatusCode: tt.status, Header: status(0, tt.header...).Header}, tt.message)
			if got == nil {
				if tt.code != "" {
					t.Errorf("got nothing, want %s", tt.code)
				}
				return
			}
			if got.Code != tt.code || got.RetryAfter != tt.retry || !strings.Contains(got.Message, tt.says) {
				t.Errorf("got %v, retry after %v", got, got.RetryAfter)
			}
			if !strings.Contains(got.Message, b.srv.Listener.Addr().String()) {
				t.Errorf("%q does not name the host", got.Message)
			}
		})
	}
}

// A redirect that leaves the path of the API tells no new name: it leads to a page that asks people to sign in.
func TestARedirectToASignInPageIsNoRename(t *testing.T) {
	for target, want := range map[string]fault.Code{
		"/login?return_to=%2Fapi": fault.ProviderDisabled, "/": fault.ProviderDisabled, "/api/v3x/1": fault.ProviderDisabled,
		"/api/v3/repositories/1": fault.UpstreamError, "": fault.UpstreamError,
	} {
		b := newBed(t, hello)
		b.connect(t, b.srv.URL+"/api/v3")
		got := b.StatusFault(&http.Response{StatusCode: http.StatusFound,
			Header: status(0, "Location", target).Header}, "")
		if got.Code != want || strings.Contains(got.Message, "sign-in") != (want == fault.ProviderDisabled) ||
			!strings.Contains(got.Message, "GITHUB_API_URL") {
			t.Errorf("%q: %v", target, got)
		}
	}
}

func TestAnAnonymous401AsksForAToken(t *testing.T) {
	b := newBed(t, hello, func(o *transport.Options) { o.Token = "" })
	got := b.StatusFault(&http.Response{StatusCode: 401}, "")
	if got.Code != fault.ProviderDisabled || !strings.Contains(got.Message, "set GITHUB_TOKEN") {
		t.Errorf("got %v", got)
	}
}

func TestALimitMayBeSaidWithStatus200(t *testing.T) {
	b := newBed(t, hello)
	reset := strconv.FormatInt(now().Add(5*time.Minute).Unix(), 10)
	got := b.LimitFault(&http.Response{
		StatusCode: 200, Header: status(0, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset).Header,
	}, "API rate limit exceeded")
	if got.Code != fault.RateLimited || got.RetryAfter != 5*time.Minute {
		t.Errorf("got %v, %v", got, got.RetryAfter)
	}
}

func TestRemainingIsWhatTheForgeSaidLast(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		if left := r.URL.Query().Get("left"); left != "" {
			w.Header().Set("X-RateLimit-Remaining", left)
		}
	})
	for _, tt := range []struct {
		path  string
		want  int
		known bool
	}{{"/", 0, false}, {"/?left=4999", 4999, true}, {"/?left=lots", 4999, true}, {"/", 4999, true},
		{"/?left=0", 0, true}} {
		b.do(t.Context(), "GET", tt.path)
		if n, known := b.Remaining(); n != tt.want || known != tt.known {
			t.Errorf("after %s: %d, %v", tt.path, n, known)
		}
	}
}

func TestFailureTranslatesWhatIsNoAnswer(t *testing.T) {
	b := newBed(t, hello)
	born := fault.New(fault.Conflict, "moved")
	tests := []struct {
		name string
		err  error
		code fault.Code
		is   error
	}{
		{"a fault stays what it is", &url.Error{Op: "Get", URL: "http://h", Err: born}, fault.Conflict, born},
		{"a cancelled context", fmt.Errorf("library: %w", context.Canceled), fault.Timeout, context.Canceled},
		{"a deadline", context.DeadlineExceeded, fault.Timeout, context.DeadlineExceeded},
		{"an answer that is not JSON", json.Unmarshal([]byte("<html>"), &struct{}{}), fault.UpstreamError, nil},
		{"an answer of another shape", json.Unmarshal([]byte(`[]`), &struct{}{}), fault.UpstreamError, nil},
		{"anything else", errors.New("strange"), fault.UpstreamError, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := b.Failure(tt.err)
			if got.Code != tt.code || tt.is != nil && !errors.Is(got, tt.is) {
				t.Errorf("got %v because of %v", got, got.Cause)
			}
		})
	}
	if b.Failure(nil) != nil {
		t.Error("nil became a failure")
	}
}

func TestAPageInsteadOfJSONReachesTheAdapterAsItIs(t *testing.T) {
	b := newBed(t, hello)
	b.Plan(nil, status(200, "Content-Type", "text/html"))
	if got := b.do(t.Context(), "GET", "/"); got.status != 200 || got.header.Get("Content-Type") != "text/html" {
		t.Errorf("got %d %v", got.status, got.fault)
	}
}
