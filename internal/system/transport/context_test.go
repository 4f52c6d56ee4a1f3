package transport_test

import (
	"compress/gzip"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

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
