package httpfault_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

const answer = `{"well":"done, this is the whole answer"}`

// bed is a server whose handler counts how often it acted and checks that it gets the body.
type bed struct {
	*httpfault.Handler
	srv    *httptest.Server
	url    string
	client *http.Client
	acts   atomic.Int32
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{}
	b.Handler = httpfault.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method == http.MethodPost && string(body) != "question" {
			t.Errorf("next got the body %q, %v", body, err)
		}
		b.acts.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answer)
	}))
	b.srv = httptest.NewServer(b.Handler)
	t.Cleanup(b.srv.Close)
	b.url, b.client = b.srv.URL, b.srv.Client()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

// post sends the question and returns status, header, body and the error of either phase.
func (b *bed) post(ctx context.Context, path string) (int, http.Header, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+path, strings.NewReader("question"))
	if err != nil {
		return 0, nil, "", err
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(body), err
}

func TestEachKindShowsTheClientWhatItPromises(t *testing.T) {
	reset := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) }
	fine := func(err error) bool { return err == nil }
	tests := []struct {
		name     string
		fault    httpfault.Fault
		status   int
		err      func(error) bool
		acted    int32
		recorded int
		header   string // of Location or Retry-After or Content-Type
		value    string
		body     string // contained
	}{
		{name: "a reset before next acts", fault: httpfault.Fault{Kind: httpfault.ResetBefore}, err: reset},
		{name: "a reset after next acted", fault: httpfault.Fault{Kind: httpfault.ResetAfter}, err: reset, acted: 1},
		{
			name: "a bad gateway after next acted", fault: httpfault.Fault{Kind: httpfault.BadGatewayAfter},
			status: 502, recorded: 502, err: fine, acted: 1, header: "Content-Type", value: "text/html; charset=utf-8",
			body: "<html>",
		},
		{
			name: "half an answer", fault: httpfault.Fault{Kind: httpfault.Truncated}, acted: 1, status: 201,
			err: func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }, body: answer[:len(answer)/2],
		},
		{
			name: "a page instead of JSON", fault: httpfault.Fault{Kind: httpfault.HTML},
			status: 200, recorded: 200, err: fine, header: "Content-Type", value: "text/html; charset=utf-8", body: "<html>",
		},
		{
			name: "a status with headers and a body",
			fault: httpfault.Fault{
				Kind: httpfault.Status, Status: 429, Header: http.Header{"Retry-After": {"7"}}, Body: `{"message":"slow"}`,
			},
			status: 429, recorded: 429, err: fine, header: "Retry-After", value: "7", body: "slow",
		},
		{
			name:   "a redirect keeps path and query",
			fault:  httpfault.Fault{Kind: httpfault.Redirect, Target: "http://elsewhere.test/"},
			status: 302, recorded: 302, err: fine, header: "Location", value: "http://elsewhere.test/a%2Fb?c=d",
		},
		{
			name:   "a redirect with a status of its own",
			fault:  httpfault.Fault{Kind: httpfault.Redirect, Target: "http://elsewhere.test", Status: 308},
			status: 308, recorded: 308, err: fine, header: "Location", value: "http://elsewhere.test/a%2Fb?c=d",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t)
			b.Plan(nil, tt.fault)
			status, header, body, err := b.post(t.Context(), "/a%2Fb?c=d")
			if status != tt.status || !tt.err(err) || !strings.Contains(body, tt.body) {
				t.Errorf("got %d %q %v", status, body, err)
			}
			if tt.header != "" && header.Get(tt.header) != tt.value {
				t.Errorf("%s is %q, want %q", tt.header, header.Get(tt.header), tt.value)
			}
			if b.acts.Load() != tt.acted {
				t.Errorf("next acted %d times, want %d", b.acts.Load(), tt.acted)
			}
			seen := b.Requests()
			if len(seen) != 1 || seen[0].Status != tt.recorded || string(seen[0].Body) != "question" ||
				seen[0].Path != "/a%2Fb" || seen[0].Query != "c=d" || seen[0].Method != "POST" {
				t.Errorf("recorded %+v", seen)
			}
			if status, _, body, err = b.post(t.Context(), "/"); status != 201 || body != answer || err != nil {
				t.Errorf("after the fault: %d %q %v", status, body, err)
			}
		})
	}
}

func TestAStallEndsWhenTheClientGoesAway(t *testing.T) {
	for kind, acts := range map[httpfault.Kind]int32{httpfault.Stall: 0, httpfault.StallAfter: 1} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBed(t)
			b.Plan(nil, httpfault.Fault{Kind: kind})
			ctx, cancel := context.WithCancel(t.Context())
			b.OnStall(cancel)
			b.OnStall(func() { t.Error("one who went away is told of a stall") })()
			if _, _, _, err := b.post(ctx, "/"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			b.srv.Close() // returns when the handler has; it would hang if that did
			if n := b.acts.Load(); n != acts {
				t.Errorf("next acted %d times, want %d", n, acts)
			}
		})
	}
}

func TestAnOversizedAnswerGoesOnUntilTheClientStops(t *testing.T) {
	b := newBed(t)
	b.Plan(nil, httpfault.Fault{Kind: httpfault.Oversized})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url, nil)
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.CopyN(io.Discard, resp.Body, 8<<20); n != 8<<20 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	_ = resp.Body.Close()
}

func TestFaultsComeWhenTheyArePlanned(t *testing.T) {
	teapot := httpfault.Fault{Kind: httpfault.Status, Status: 418}
	tests := []struct {
		name string
		plan func(*bed)
		want []int
	}{
		{"the next one", func(b *bed) { b.Plan(nil, teapot) }, []int{418, 201, 201, 201}},
		{"the next two, planned one by one", func(b *bed) { b.Plan(nil, teapot); b.Plan(nil, teapot) },
			[]int{418, 418, 201, 201}},
		{"the third only", func(b *bed) { b.PlanNth(3, teapot) }, []int{201, 201, 418, 201}},
		{"from the second on", func(b *bed) { b.PlanFrom(2, teapot) }, []int{201, 418, 418, 418}},
		{"the first that matches, by its body", func(b *bed) {
			b.Plan(func(r *http.Request) bool {
				body, _ := io.ReadAll(r.Body)
				return r.URL.Path == "/2" && string(body) == "question"
			}, teapot)
		}, []int{201, 201, 418, 201}},
		{"the plan made first wins", func(b *bed) {
			b.PlanFrom(1, teapot)
			b.Plan(nil, httpfault.Fault{Kind: httpfault.HTML})
		}, []int{418, 418, 418, 418}},
		{"nothing after Forget", func(b *bed) { b.PlanFrom(1, teapot); b.Forget() }, []int{201, 201, 201, 201}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t)
			tt.plan(b)
			for i, want := range tt.want {
				status, _, _, err := b.post(t.Context(), "/"+string(rune('0'+i)))
				if status != want || err != nil {
					t.Errorf("request %d: %d %v, want %d", i+1, status, err, want)
				}
			}
		})
	}
}

func TestConcurrentRequestsAreAllRecordedAndOneFaultHitsOne(t *testing.T) {
	b := newBed(t)
	b.SetLatency(time.Millisecond)
	b.Plan(nil, httpfault.Fault{Kind: httpfault.Status, Status: 418})
	var teapots atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if status, _, _, _ := b.post(t.Context(), "/"); status == 418 {
				teapots.Add(1)
			}
		})
	}
	wg.Wait()
	if len(b.Requests()) != 20 || teapots.Load() != 1 {
		t.Errorf("%d requests, %d faults", len(b.Requests()), teapots.Load())
	}
	if b.Forget(); len(b.Requests()) != 0 {
		t.Error("Forget left requests")
	}
}

func TestWhatIsLateActsWhenItIsTold(t *testing.T) {
	for _, kind := range []httpfault.Kind{httpfault.Late, httpfault.LateStall} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBed(t)
			arrived := make(chan struct{})
			b.Plan(func(*http.Request) bool { close(arrived); return true }, httpfault.Fault{Kind: kind})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { <-arrived; cancel() }()
			if _, _, _, err := b.post(ctx, "/"); err == nil || b.acts.Load() != 0 {
				t.Errorf("%v, %d acts", err, b.acts.Load())
			}
			n := 0
			for end := time.Now().Add(time.Minute); n == 0 && time.Now().Before(end); { // its client may have gone first
				n = b.ActLate()
			}
			if n != 1 || b.acts.Load() != 1 || b.ActLate() != 0 {
				t.Errorf("%d were late, %d acts", n, b.acts.Load())
			}
		})
	}
}
