package resilience

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// trouble is one way in which a request goes wrong, and the codes that a caller may be answered with. That the flow
// gets over it is always right.
type trouble struct {
	name  string
	fault httpfault.Fault
	stays bool // every later request goes wrong, too
	codes []fault.Code
}

func troubles(elsewhere string) []trouble {
	status := func(code int, header ...string) httpfault.Fault {
		f := httpfault.Fault{Kind: httpfault.Status, Status: code, Header: http.Header{}, Body: `{"message":"no"}`}
		f.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			f.Header.Set(header[i], header[i+1])
		}
		return f
	}
	broken := []fault.Code{fault.UpstreamError, fault.Timeout}
	denied := []fault.Code{fault.ProviderDisabled, fault.RepoNotAllowed}
	return []trouble{
		{"the connection is reset before the server acted", httpfault.Fault{Kind: httpfault.ResetBefore}, false, broken},
		{"the connection is reset after the server acted", httpfault.Fault{Kind: httpfault.ResetAfter}, false, broken},
		{"the server is gone from here on", httpfault.Fault{Kind: httpfault.ResetBefore}, true, broken},
		{"the server acts and answers nobody from here on", httpfault.Fault{Kind: httpfault.ResetAfter}, true, broken},
		{"502 after success", httpfault.Fault{Kind: httpfault.BadGatewayAfter}, false, broken},
		{"a stall", httpfault.Fault{Kind: httpfault.Stall}, false, broken},
		{"a stall after success", httpfault.Fault{Kind: httpfault.StallAfter}, false, broken},
		{"a truncated body", httpfault.Fault{Kind: httpfault.Truncated}, false, broken},
		{"an oversized body", httpfault.Fault{Kind: httpfault.Oversized}, false, broken},
		{"HTML instead of JSON", httpfault.Fault{Kind: httpfault.HTML}, false, broken},
		{"401", status(401), false, denied},
		{"403", status(403), false, append(denied, fault.Conflict)},
		{"404", status(404), false, []fault.Code{fault.NotFound, fault.UpstreamError}},
		{"409", status(409), false, append(broken, fault.Conflict, fault.NotFound)},
		{"422", status(422), false, append(broken, fault.Conflict, fault.NotFound, fault.NoChange, fault.InvalidArgument,
			fault.ProviderDisabled)}, // an app's token is refused so
		{"429", status(429), false, []fault.Code{fault.RateLimited}},
		{"429 with a short Retry-After", status(429, "Retry-After", "1"), false, []fault.Code{fault.RateLimited}},
		{"429 with a long Retry-After", status(429, "Retry-After", "3600"), false, []fault.Code{fault.RateLimited}},
		{"403 with a Retry-After", status(403, "Retry-After", "3600"), false, []fault.Code{fault.RateLimited}},
		{"500", status(500), false, broken},
		{"503", status(503), false, broken},
		{"a redirect to another host", httpfault.Fault{Kind: httpfault.Redirect, Target: elsewhere}, false,
			append([]fault.Code{fault.ProviderDisabled}, broken...)},
	}
}

// other is a host that must never see a token.
func other(t *testing.T) (address string) {
	var seen atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			seen.Store(true)
		}
	}))
	t.Cleanup(func() {
		server.Close()
		if seen.Load() {
			t.Error("another host was sent the token")
		}
	})
	return server.URL
}

// sequence returns the number of requests of an undisturbed proposal.
func sequence(t *testing.T, k kind) int {
	t.Helper()
	w := newWorld(t, k)
	result, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.assertTheOne(result.Number)
	w.assertRecords()
	w.assertNoToken()
	return len(w.forge.Faults().Requests())
}

// TestWhateverGoesWrongAtWhicheverRequestARetryEndsInTheOnePullRequest is the fault table.
func TestWhateverGoesWrongAtWhicheverRequestARetryEndsInTheOnePullRequest(t *testing.T) {
	for _, k := range withApp() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			elsewhere := other(t)
			for n := 1; n <= sequence(t, k); n++ {
				for i, tr := range troubles(elsewhere) {
					if !k.tries(n, i) {
						continue
					}
					t.Run(fmt.Sprintf("%s at request %d", tr.name, n), func(t *testing.T) {
						t.Parallel()
						w := newWorld(t, k)
						if tr.stays {
							w.forge.Faults().PlanFrom(n, tr.fault)
						} else {
							w.forge.Faults().PlanNth(n, tr.fault)
						}
						w.recover(t.Context(), tr.codes)
					})
				}
			}
		})
	}
}

// recover proposes, with the trouble that is planned, and proposes again without.
func (w *world) recover(ctx context.Context, codes []fault.Code) {
	w.t.Helper()
	first, err := w.create(ctx)
	if code := fault.CodeOf(err); err != nil && !slices.Contains(codes, code) {
		w.t.Errorf("the code is %s (%v; %v), want one of %v", code, err, fault.From(err).Cause, codes)
	}
	w.assertAtMostOne("after the trouble")
	w.forge.Faults().Forget()

	again, retryErr := w.create(context.WithoutCancel(ctx))
	if retryErr != nil {
		w.t.Fatalf("the retry failed: %v (%v); the first answer was %+v, %v", retryErr, fault.From(retryErr).Cause, first,
			err)
	}
	if err == nil && again.Number != first.Number {
		w.t.Errorf("answered with #%d and then with #%d", first.Number, again.Number)
	}
	w.assertTheOne(again.Number)
	w.assertRecords()
	w.assertNoToken()
}

func TestACallerWhoGoesAwayAtWhicheverRequestLeavesNothingHalfMade(t *testing.T) {
	for _, k := range withApp() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= sequence(t, k); n++ {
				t.Run(fmt.Sprintf("at request %d", n), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, k)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					arrived := 0
					w.forge.Faults().Plan(func(*http.Request) bool {
						if arrived++; arrived == n {
							cancel()
						}
						return false
					}, httpfault.Fault{Kind: httpfault.HTML})
					w.recover(ctx, []fault.Code{fault.Timeout, fault.UpstreamError})
				})
			}
		})
	}
}

// closed is a forge whose address has no listener.
type closed struct {
	forge
	address string
}

func (c closed) URL() string { return c.address }

func TestAServerThatRefusesConnectionsLeavesNothing(t *testing.T) {
	for _, k := range withApp() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k)
			gone := httptest.NewServer(http.NotFoundHandler())
			gone.Close()
			there := w.forge
			w.forge = closed{there, gone.URL}
			if _, err := w.create(t.Context()); fault.CodeOf(err) != fault.UpstreamError {
				t.Errorf("got %v, want an upstream error", err)
			}
			w.assertRecords()
			w.forge = there
			w.recover(t.Context(), nil)
		})
	}
}
