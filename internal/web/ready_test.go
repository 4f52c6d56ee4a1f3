package web_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// twoForges is a world with the providers fake and second enabled, and gitea disabled.
func twoForges(t *testing.T, log *bytes.Buffer) (w *world, second *forgetest.Fake) {
	t.Helper()
	second = forgetest.NewFake()
	second.SetName("second")
	return newWorld(t, func(w *world) {
		w.web.Providers.Registry = gitprovider.NewRegistry([]gitprovider.Registration{
			{Name: "fake", Provider: w.fake}, {Name: "gitea", Disabled: "GITEA_TOKEN is not set"},
			{Name: "second", Provider: second},
		}, nil, "", nil)
		w.web.Env.Log = slog.New(slog.NewTextHandler(log, nil))
	}), second
}

func TestReadinessNamesEachProviderAndFailsForThemOnlyIfAskedTo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  *fault.Error
		code fault.Code // "" for ready
	}{
		"all answer":  {nil, ""},
		"one is down": {fault.New(fault.UpstreamError, "git.example.org failed (503)"), fault.UpstreamError},
		"one refuses our token": {fault.New(fault.ProviderDisabled, "GITEA_TOKEN %s was refused", ownToken),
			fault.ProviderDisabled},
		"one limits us": {fault.New(fault.RateLimited, "no more"), fault.RateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w, second := twoForges(t, &log)
			if tt.err != nil {
				second.Script.FailBefore(forgetest.MethodPing, tt.err)
			}
			w.want(w.get("/readyz"), 200, "")
			if w.fake.Script.Reads()+second.Script.Reads() != 0 {
				t.Error("providers were asked without being asked about")
			}
			a := w.get("/readyz?providers=1")
			if tt.code == "" {
				w.want(a, 200, "")
				want := `"providers":[{"name":"fake","state":"ok"},{"name":"gitea","state":"disabled"},{"name":"second","state":"ok"}]`
				if !strings.Contains(string(a.body), want) {
					t.Errorf("got %s", a.body)
				}
				return
			}
			w.want(a, 503, tt.code)
			if a.json["detail"] != "fake is ok, gitea is disabled, second is down" {
				t.Errorf("got %s", a.body)
			}
			if want := fmt.Sprintf(`"violations":[{"code":%q,"rule":"second",`, tt.code); !strings.Contains(string(a.body),
				want) {
				t.Errorf("got %s, want %s", a.body, want)
			}
			for _, kept := range []string{ownToken, tt.err.Message} {
				if strings.Contains(string(a.body), kept) {
					t.Errorf("%q was told to anybody: %s", kept, a.body)
				}
			}
			if !strings.Contains(log.String(), "provider=second") || strings.Contains(log.String(), ownToken) {
				t.Errorf("the log has %s", &log)
			}
			w.want(w.get("/readyz"), 200, "")
			if w.fake.Script.Writes()+second.Script.Writes() != 0 {
				t.Error("something was written")
			}
		})
	}
}

func TestProvidersAreAskedOnceForManyCallersAndAgainAfterHalfAMinute(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, second := twoForges(t, &log)
	w.build()
	entered, release := second.Script.Block(forgetest.MethodPing)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { w.want(w.get("/readyz?providers=1"), 200, "") })
	}
	<-entered
	release()
	wg.Wait()
	asked := func(want int) {
		t.Helper()
		if a, b := w.fake.Script.Count(forgetest.MethodPing), second.Script.Count(forgetest.MethodPing); a != want ||
			b != want {
			t.Errorf("asked %d and %d times, want %d", a, b, want)
		}
	}
	asked(1)
	w.advance(29 * time.Second)
	w.want(w.get("/readyz?providers=1"), 200, "")
	asked(1)
	w.advance(time.Second)
	second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.UpstreamError, "down"))
	w.want(w.get("/readyz?providers=1"), 503, fault.UpstreamError)
	w.want(w.get("/readyz?providers=1"), 503, fault.UpstreamError)
	asked(2)
}

func TestProvidersThatHangCostTwoSecondsAltogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w, second := twoForges(t, &log)
		w.build()
		_, releaseFirst := w.fake.Script.Block(forgetest.MethodPing)
		_, releaseSecond := second.Script.Block(forgetest.MethodPing)
		defer releaseFirst()
		defer releaseSecond()
		began := time.Now()
		w.want(w.get("/readyz?providers=1"), 503, fault.Timeout)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestACallerWhoGoesAwayDoesNotMakeProvidersLookDown(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, second := twoForges(t, &log)
	w.build()
	entered, release := second.Script.Block(forgetest.MethodPing)
	ctx, leave := context.WithCancel(t.Context())
	gone := func(r *http.Request) { *r = *r.WithContext(ctx) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.get("/readyz?providers=1", gone)
	}()
	<-entered
	leave()
	release()
	<-done
	w.want(w.get("/readyz?providers=1"), 200, "")
	if n := second.Script.Count(forgetest.MethodPing); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestWithoutAProviderOrRecordsNothingIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.web.Providers.Registry = gitprovider.NewRegistry([]gitprovider.Registration{{Name: "gitea",
			Disabled: "GITEA_TOKEN is not set"}}, nil, "", nil)
	})
	w.want(w.get("/readyz"), 200, "")
	w.want(w.get("/readyz?providers=1"), 503, fault.ProviderDisabled)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.want(w.get("/readyz?providers=1"), 503, fault.Internal)
}

func TestReadinessNamesNoProviderToStrangers(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"all answer": false, "one is down": true} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w, second := twoForges(t, &log)
			reader := bearer(w.token("prober", 1, "read"))
			proposer := bearer(w.token("ci", 1, "propose"))
			w.person = ""
			want, code := 200, fault.Code("")
			if down {
				second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.RateLimited, "no more"))
				want, code = 503, fault.UpstreamError
			}
			for who, edits := range map[string][]edit{"nobody": nil, "without the scope": {proposer}} {
				a := w.get("/readyz?providers=1", edits...)
				w.want(a, want, code)
				for _, told := range []string{"fake", "gitea", "second", "rate_limited"} {
					if strings.Contains(string(a.body), told) {
						t.Errorf("%s is told %q: %s", who, told, a.body)
					}
				}
			}
			if a := w.get("/readyz?providers=1", reader); !strings.Contains(string(a.body), "second") {
				t.Errorf("who may read: %s", a.body)
			}
			w.want(w.get("/readyz?providers=1", bearer("wrong")), 401, fault.Unauthenticated)
		})
	}
}

// unreadable are attempts whose records cannot be read.
type unreadable struct {
	attempts
	why error
}

func (u unreadable) Ping(context.Context) error { return u.why }

func TestAServerThatIsNotReadySaysToAnybodyWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for want, why := range map[string]error{
		"the server waits for the database; the log": fault.New(fault.UpstreamError, "db.example.org is away").Awaits("the database"),
		"cannot be read or written; the log":         fault.New(fault.Internal, "db.example.org is damaged"),
	} {
		w := newWorld(t, func(w *world) {
			w.strangers = true
			w.web.Records.Attempts = unreadable{attempts{w.store.History, w.store}, why}
		})
		a := w.get("/readyz")
		w.want(a, 503, fault.Internal)
		if body := string(a.body); !strings.Contains(body, want) || strings.Contains(body, "example.org") {
			t.Errorf("got %s, want %s", body, want)
		}
	}
}

func TestGoodProbesAreNoLinesOfTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, func(w *world) { w.web.Env.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		w.want(w.get(path), 200, "")
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
	w.get("/api/v1/me")
	w.get("/readyz?providers=nonsense")
	for _, route := range []string{"/api/v1/me", "/readyz"} {
		if !strings.Contains(log.String(), route) {
			t.Errorf("%s is missing in %s", route, log.String())
		}
	}
}
