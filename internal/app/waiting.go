package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// startRetry is the interval at which a starting server retries what the machine did not permit.
const startRetry = time.Second

// startWait waits for what a server needs of the machine: its address, its folder, its database. It gives up after a
// bounded time, so that the failure becomes visible to the program that started the server.
type startWait struct {
	until  time.Time
	now    func() time.Time
	sleep  func(ctx context.Context, d time.Duration)
	report func(waitsFor string, err error) // at the first failure, and whenever it is another one
	last   string
}

func newStart(p *Parts) *startWait {
	return &startWait{until: time.Now().Add(p.Cfg.Web.StartWait), now: time.Now, sleep: transport.Sleep,
		report: func(waitsFor string, err error) {
			p.Log.Warn("the server waits at its start", "for", waitsFor, "at_most", p.Cfg.Web.StartWait, "why", messageOf(err))
		}}
}

// messageOf returns an error's message for people, without its code.
func messageOf(err error) string {
	var usage UsageError
	if errors.As(err, &usage) {
		return usage.Error()
	}
	return fault.From(err).Message
}

// wait tries until it succeeds, fails for another reason than the state of the machine, or the bound is over. The error
// is the last one.
func (s *startWait) wait(ctx context.Context, try func() error) error {
	for {
		err := try()
		waitsFor := WaitsFor(err)
		if err == nil || waitsFor == "" || ctx.Err() != nil || !s.now().Before(s.until) {
			return err
		}
		if text := messageOf(err); text != s.last {
			s.last = text
			s.report(waitsFor, err)
		}
		s.sleep(ctx, startRetry)
	}
}

// waitBehind is wait for a server that listens already: meanwhile its probes say what it waits for.
func (s *startWait) waitBehind(ctx context.Context, web config.Web, listeners []net.Listener, try func() error) error {
	err := try()
	if err == nil || WaitsFor(err) == "" {
		return err
	}
	answers := &waitingAnswers{basePath: web.BasePath}
	answers.waitsFor.Store(WaitsFor(err))
	server := &http.Server{Handler: answers, ReadHeaderTimeout: startRetry}
	ended := make(chan struct{})
	for _, listener := range listeners {
		go func() {
			_ = server.Serve(lentListener{listener}) // it ends by Shutdown
			ended <- struct{}{}
		}()
	}
	err = s.wait(ctx, func() error {
		err := try()
		answers.waitsFor.Store(WaitsFor(err))
		return err
	})
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), startRetry)
	defer cancel()
	err = errors.Join(err, ignoreDeadline(server.Shutdown(bound)), server.Close())
	for range listeners {
		<-ended
	}
	for _, listener := range listeners {
		err = errors.Join(err, lentListener{listener}.setDeadline(time.Time{}))
	}
	return err
}

// ignoreDeadline drops the error of a shutdown that could not wait for every answer.
func ignoreDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// lentListener is a listener that is used for a while: closing it ends the waiting for connections, and leaves it open.
type lentListener struct{ net.Listener }

// Close implements net.Listener.
func (l lentListener) Close() error { return l.setDeadline(time.Now()) }

func (l lentListener) setDeadline(at time.Time) error {
	if tcp, is := l.Listener.(*net.TCPListener); is {
		return tcp.SetDeadline(at)
	}
	return nil
}

// waitingAnswers answers what is asked of a server that waits: it is alive, and not ready.
type waitingAnswers struct {
	basePath string
	waitsFor atomic.Value // string
}

// ServeHTTP implements http.Handler.
func (a *waitingAnswers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if path := strings.TrimPrefix(r.URL.Path, a.basePath); path == "/healthz" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}`)) // best effort: the client may be gone
		return
	}
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusServiceUnavailable)
	waitsFor, _ := a.waitsFor.Load().(string)
	_, _ = w.Write([]byte("the server is starting; it waits for " + waitsFor + "\n"))
}
