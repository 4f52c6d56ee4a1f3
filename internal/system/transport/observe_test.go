package transport_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

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
