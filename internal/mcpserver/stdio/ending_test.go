package stdio

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// These tests run on synctest's clock: waiting costs no time and durations are exact.

func TestCallsInFlightAtTheEndOfInputAreFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		c := start(t, t.Context(), newServer(g), Options{Workers: 1, DrainTimeout: time.Minute})
		c.send(callTool("1", "gate", `{}`))
		c.send(callTool("2", "gate", `{}`))
		time.AfterFunc(59*time.Second, func() { close(g.release) })
		rest := c.endInput()
		if len(rest) != 2 || byID(t, rest, "1").Error != nil || byID(t, rest, "2").Error != nil {
			t.Errorf("want both results, got %q", lines(rest))
		}
		if cause := <-g.ended; cause != nil {
			t.Errorf("the call was cancelled: %v", cause)
		}
	})
}

func TestADrainEndsAtItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var seen rejections
		c := start(t, t.Context(), newServer(g), Options{Workers: 1, DrainTimeout: time.Minute, OnReject: seen.hook})
		c.send(callTool("1", "gate", `{}`))
		c.send(callTool("2", "echo", `{}`))
		begin := time.Now()
		rest := c.endInput()
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("want an end after one minute, took %v", took)
		}
		if cause := <-g.ended; !errors.Is(cause, errShutdown) {
			t.Errorf("want ErrShutdown as the cause, got %v", cause)
		}
		if byID(t, rest, "1").Error != nil {
			t.Errorf("a handler that returns when cancelled is answered as usual: %q", lines(rest))
		}
		if m := byID(t, rest, "2"); m.Error == nil || m.Error.Data["reason"] != "shutdown" {
			t.Errorf("a call that could not start is refused: %q", lines(rest))
		}
		if all := seen.list(); len(all) != 1 || all[0].Reason != ReasonShutdown || all[0].ID != "2" {
			t.Errorf("want a report of the call that could not start, got %+v", all)
		}
	})
}

// A context ends before those made of it do. A call that gets its place in between is refused like the others.
func TestACallDoesNotStartBetweenTheEndOfTheServerAndThatOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen rejections
		l := newLoop(t.Context(), io.Discard, newServer(nil), Options{Workers: 1, OnReject: seen.hook})
		go l.out.run()
		defer close(l.out.quit)
		ctx, cancel := context.WithCancelCause(t.Context())
		l.cut(errShutdown)
		raw := []byte(callTool("1", "echo", `{}`))
		env, refused := inspect(frame{raw: raw, size: int64(len(raw))}, 1<<20, func(requestID) bool { return false })
		if refused != nil {
			t.Fatalf("a proper call was refused: %+v", refused)
		}
		env.to = l.out
		l.calls.admit(&call{env: env, raw: raw, ctx: ctx, cancel: cancel, connection: newCallConnection(l.connection)})
		synctest.Wait()
		if all := seen.list(); len(all) != 1 || all[0].Reason != ReasonShutdown {
			t.Errorf("want the call refused, got %+v", all)
		}
	})
}

func TestAHandlerThatIgnoresItsContextIsLeftBehindAndAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.deaf = true
		var seen rejections
		c := start(t, t.Context(), newServer(g), Options{Workers: 1, DrainTimeout: time.Minute, OnReject: seen.hook})
		c.send(callTool("1", "gate", `{}`))
		c.send(callTool("2", "gate", `{}`))
		begin := time.Now()
		rest := c.endInput()
		if took := time.Since(begin); took != time.Minute+unwindTime {
			t.Errorf("took %v", took)
		}
		for _, id := range []string{"1", "2"} {
			if m := byID(t, rest, id); m.Error == nil || m.Error.Data["reason"] != "shutdown" {
				t.Errorf("want an answer that says the call was cut off, got %s", m.line)
			}
		}
		if all := seen.list(); len(all) != 2 {
			t.Errorf("want both calls reported, got %+v", all)
		}
		close(g.release) // lets the handler go, so that the bubble can end
	})
}

func TestShutdownFinishesRunningCallsAndRefusesQueuedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var seen rejections
		ctx, cancel := context.WithCancel(t.Context())
		opts := Options{Workers: 1, ShutdownTimeout: 5 * time.Second, OnReject: seen.hook}
		c := start(t, ctx, newServer(g), opts)
		c.send(callTool("1", "gate", `{}`))
		c.send(callTool("2", "gate", `{}`))
		c.send(pingLine)
		c.next()
		cancel() // in keeps blocking: nothing closes it
		time.AfterFunc(4*time.Second, func() { close(g.release) })
		rest, err := c.finish()
		if err != nil {
			t.Fatalf("Serve: %v", err)
		}
		if byID(t, rest, "1").Error != nil {
			t.Errorf("the running call was not finished: %q", lines(rest))
		}
		if m := byID(t, rest, "2"); m.Error == nil || m.Error.Data["reason"] != "shutdown" {
			t.Errorf("the queued call was not refused: %q", lines(rest))
		}
		if all := seen.list(); len(all) != 1 || all[0].ID != "2" || all[0].Reason != ReasonShutdown {
			t.Errorf("want a report of the queued call, got %+v", all)
		}
		_ = c.in.Close()
	})
}

func TestShutdownEndsAtItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		ctx, cancel := context.WithCancel(t.Context())
		c := start(t, ctx, newServer(g), Options{ShutdownTimeout: 5 * time.Second, DrainTimeout: time.Hour})
		c.send(callTool("1", "gate", `{}`))
		<-g.started
		begin := time.Now()
		cancel()
		if _, err := c.finish(); err != nil {
			t.Fatalf("Serve: %v", err)
		}
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("took %v", took)
		}
		if cause := <-g.ended; !errors.Is(cause, errShutdown) {
			t.Errorf("want ErrShutdown as the cause, got %v", cause)
		}
		_ = c.in.Close()
	})
}

func TestASignalDuringADrainShortensIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		ctx, cancel := context.WithCancel(t.Context())
		c := start(t, ctx, newServer(g), Options{ShutdownTimeout: 5 * time.Second, DrainTimeout: time.Hour})
		c.send(callTool("1", "gate", `{}`))
		<-g.started
		begin := time.Now()
		time.AfterFunc(time.Minute, cancel)
		c.endInput()
		if took := time.Since(begin); took != time.Minute+5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestAClientThatStopsReadingCannotHoldTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := start(t, ctx, newServer(nil), Options{ShutdownTimeout: 5 * time.Second})
		c.send(pingLine)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`) // the answers are not read
		cancel()
		begin := time.Now()
		if err := <-c.result; err != nil {
			t.Fatalf("Serve: %v", err)
		}
		if took := time.Since(begin); took > 8*time.Second {
			t.Errorf("took %v", took)
		}
		_ = c.out.Close()
		_ = c.in.Close()
	})
}

func TestWhenTheClientHasGoneOnlyCallsThatGoOnRegardlessAreAwaited(t *testing.T) {
	for name, leave := range map[string]func(c *client, gone chan struct{}){
		"the output breaks": func(c *client, _ chan struct{}) {
			_ = c.out.Close()
			c.send(pingLine) // its answer has no reader
		},
		"the caller says so": func(_ *client, gone chan struct{}) { close(gone) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obedient, deaf, gone := newGate(), newGate(), make(chan struct{})
				deaf.deaf = true
				srv := newServer(obedient)
				srv.AddTool(deafTool(), deaf.handle)
				c := start(t, t.Context(), srv, Options{Workers: 2, DrainTimeout: time.Minute, Gone: gone})
				c.send(callTool("1", "gate", `{}`))
				c.send(callTool("2", "deaf", `{}`))
				c.send(callTool("3", "gate", `{}`)) // waits
				<-obedient.started
				<-deaf.started
				leave(c, gone)
				if cause := <-obedient.ended; !errors.Is(cause, ErrClientGone) {
					t.Errorf("want ErrClientGone as the cause, got %v", cause)
				}
				_ = c.out.Close() // the reader is gone
				time.AfterFunc(30*time.Second, func() { close(deaf.release) })
				begin := time.Now()
				if err := <-c.result; err != nil {
					t.Errorf("want a clean end, got %v", err)
				}
				if took := time.Since(begin); took != 30*time.Second {
					t.Errorf("want Serve to wait for the call that goes on, took %v", took)
				}
				if len(obedient.started) != 0 {
					t.Error("the waiting call was started")
				}
				_ = c.in.Close()
			})
		})
	}
}

// An input with deadlines (a pipe or socket of the runtime's poller) is interrupted, so that nothing is left behind.
func TestAReadThatCanBeInterruptedIsNotLeftBehind(t *testing.T) {
	in, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer inWrite.Close()
	defer in.Close()
	reads := &countedReads{File: in, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Serve(ctx, reads, io.Discard, newServer(nil), Options{}); err != nil {
		t.Fatalf("Serve: %v", err)
	}
	if err := <-reads.ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("want the Read interrupted, got %v", err)
	}
}

type countedReads struct {
	*os.File
	ended chan error
}

func (r *countedReads) Read(p []byte) (int, error) {
	n, err := r.File.Read(p)
	r.ended <- err
	return n, err
}

func TestAContextThatHasEndedServesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if err := Serve(ctx, strings.NewReader(pingLine), &out, newServer(nil), Options{}); err != nil || out.Len() != 0 {
		t.Errorf("want a clean end and no output, got %v and %q", err, out.String())
	}
}
