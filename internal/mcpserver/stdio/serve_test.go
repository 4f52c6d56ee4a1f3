package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/mcpio"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestTheLegacyEraIsServed(t *testing.T) {
	for offered, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05",
		"1999-01-01": "2025-11-25",
	} {
		t.Run(offered, func(t *testing.T) {
			got := serveAll(t, newServer(nil), Options{}, strings.Join([]string{
				strings.Replace(initializeLine, "2025-11-25", offered, 1),
				initializedLine,
				`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
				callTool("2", "echo", `{"text":"hi"}`),
				pingLine,
				`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`,
			}, "\n"))
			var hello struct{ ProtocolVersion string }
			if err := json.Unmarshal(byID(t, got, "0").Result, &hello); err != nil || hello.ProtocolVersion != want {
				t.Errorf("want version %s, got %s", want, byID(t, got, "0").line)
			}
			must.Contain(t, byID(t, got, "1").line, `"name":"echo"`)
			must.Contain(t, byID(t, got, "2").line, `"text":"hi"`)
			if ping := byID(t, got, `"ping"`); string(ping.Result) != "{}" {
				t.Errorf("ping: %s", ping.line)
			}
			if unknown := byID(t, got, "3"); unknown.Error == nil || unknown.Error.Code != -32601 {
				t.Errorf("a method that is not there: %s", unknown.line)
			}
		})
	}
}

func TestTheModernEraIsServedWithoutAHandshake(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	got := serveUntil(t, newServer(nil), Options{}, strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{` +
			`"name":"notes","arguments":{"count":3,"tag":"p"},` + meta + `}}`,
		`{"jsonrpc":"2.0","id":4,"method":"ping","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{},` + meta + `}}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{` +
			strings.Replace(meta, "2026-07-28", "2027-01-01", 1) + `}}`,
	}, "\n"), `"id":5`)
	if discover := byID(t, got, "1"); !strings.Contains(discover.line, `"2026-07-28"`) ||
		!strings.Contains(discover.line, `"supportedVersions"`) {
		t.Errorf("server/discover: %s", discover.line)
	}
	must.Contain(t, byID(t, got, "2").line, `"resultType":"complete"`)
	if call := byID(t, got, "3"); call.Error != nil {
		t.Errorf("tools/call: %s", call.line)
	}
	if ping := byID(t, got, "4"); ping.Error == nil || ping.Error.Code != -32601 {
		t.Errorf("ping was removed in this era: %s", ping.line)
	}
	if listen := byID(t, got, "5"); listen.Error != nil {
		t.Errorf("subscriptions/listen with nothing to listen to ends at once: %s", listen.line)
	}
	if future := byID(t, got, "6"); future.Error == nil || future.Error.Data["supported"] == nil {
		t.Errorf("an unknown version is refused with the known ones: %s", future.line)
	}
	progress := 0
	for _, m := range got {
		if m.Method == "notifications/progress" {
			progress++
		}
	}
	if progress != 3 {
		t.Errorf("want 3 progress notifications, got %d in %q", progress, lines(got))
	}
}

func TestInlineRequestsAreAnsweredInOrder(t *testing.T) {
	var input strings.Builder
	var want []string
	for i := range 50 {
		method := []string{"ping", "tools/list", "nonsense"}[i%3]
		fmt.Fprintf(&input, `{"jsonrpc":"2.0","id":%d,"method":%q}`+"\n", i, method)
		want = append(want, fmt.Sprint(i))
	}
	var got []string
	for _, m := range serveAll(t, newServer(nil), Options{}, input.String()) {
		got = append(got, string(m.ID))
	}
	must.Equal(t, got, want)
}

func TestInputThatEndsAtOnceGetsAllItsAnswers(t *testing.T) {
	input := []string{initializeLine, initializedLine}
	for i := range 40 {
		input = append(input, callTool(fmt.Sprint(i+1), "echo", fmt.Sprintf(`{"text":"call %d"}`, i+1)))
	}
	got := serveAll(t, newServer(nil), Options{}, strings.Join(input, "\n")) // no newline at the end
	for i := range 40 {
		if answer := byID(t, got, fmt.Sprint(i+1)); !strings.Contains(answer.line, fmt.Sprintf("call %d", i+1)) {
			t.Errorf("answer %d: %s", i+1, answer.line)
		}
	}
}

func TestEmptyInputEndsCleanly(t *testing.T) {
	wantCount(t, serveAll(t, newServer(nil), Options{}, ""), 0)
}

func TestOutputIsNotEscapedForHTML(t *testing.T) {
	got := serveAll(t, newServer(nil), Options{}, callTool("1", "html", `{}`))
	answer := byID(t, got, "1")
	if !strings.Contains(answer.line, `a < b && c > d`) {
		t.Errorf("want <, & and > as they are, got %s", answer.line)
	}
	must.Contain(t, answer.line, `\u2028`)
}

func TestAHandlerSeesTheArgumentsAsTheyWereSent(t *testing.T) {
	const arguments = `{"a":1, "a":1.50,"A":"\u0061", "n":1e999}`
	for _, between := range []string{"", " ", "\t \r "} {
		line := `{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"raw","arguments"` + between + ":" +
			between +
			arguments + between + `,"_meta":{}}}`
		got := serveAll(t, newServer(nil), Options{}, " "+line+"\r\n")
		var result struct{ Content []struct{ Text string } }
		must.Do(t, json.Unmarshal(byID(t, got, "1").Result, &result))
		if want := "0 " + arguments; len(result.Content) != 1 || result.Content[0].Text != want {
			t.Errorf("want %q, got %+v", want, result.Content)
		}
	}
	if Arguments(t.Context()) != nil {
		t.Error("there are no arguments outside of a call")
	}
}

func TestFailuresInsideShowNothingToTheClient(t *testing.T) {
	for _, tool := range []string{"panic", "fail", "nothing"} {
		t.Run(tool, func(t *testing.T) {
			var seen rejections
			input := callTool("1", tool, `{}`) + "\n" + callTool("2", "echo", `{}`)
			got := serveAll(t, newServer(nil), Options{OnReject: seen.hook}, input)
			answer := byID(t, got, "1")
			if answer.Error == nil || answer.Error.Code != -32603 || strings.Contains(answer.line, "hunter2") {
				t.Errorf("want a generic internal error, got %s", answer.line)
			}
			if after := byID(t, got, "2"); after.Error != nil {
				t.Errorf("the next call failed: %s", after.line)
			}
			if tool == "nothing" {
				return // the handler returned normally; only its result could not be written
			}
			seen.wantOne(t, ReasonInternal, "", tool)
		})
	}
}

func TestAPanickingHookDoesNotEndTheSession(t *testing.T) {
	opts := Options{OnReject: func(context.Context, Rejection) { panic("hook") }}
	got := serveAll(t, newServer(nil), opts, "nonsense\n"+pingLine)
	if len(got) != 2 {
		t.Errorf("want the refusal and the answer to ping, got %q", lines(got))
	}
}

func TestUnreadableInputIsAnError(t *testing.T) {
	broken := errors.New("disk on fire")
	in := io.MultiReader(strings.NewReader(pingLine+"\n"+`{"unfinished`), errorReader{broken})
	var out bytes.Buffer
	if err := Serve(t.Context(), in, &out, newServer(nil), Options{}); !errors.Is(err, broken) {
		t.Errorf("want the error of the input, got %v", err)
	}
	if got := strings.Count(out.String(), "\n"); got != 1 {
		t.Errorf("want the answer to ping only, got %q", out.String())
	}
}

func TestBrokenOutput(t *testing.T) {
	full := errors.New("no space")
	for name, tt := range map[string]struct{ broken, want error }{
		"a reader that has gone is a normal end": {syscall.EPIPE, nil},
		"a closed pipe is a normal end":          {io.ErrClosedPipe, nil},
		"anything else is an error":              {full, full},
	} {
		t.Run(name, func(t *testing.T) {
			in, inWrite := io.Pipe()
			defer inWrite.Close()
			go func() { _, _ = io.WriteString(inWrite, pingLine+"\n") }() // and no end of input
			if err := Serve(t.Context(), in, errorWriter{tt.broken}, newServer(nil), Options{}); !errors.Is(err, tt.want) {
				t.Errorf("want %v, got %v", tt.want, err)
			}
		})
	}
}

func TestTwoSessionsOnOneServerAreRefused(t *testing.T) {
	srv := newServer(nil)
	first := start(t, t.Context(), srv, Options{})
	first.send(pingLine)
	first.next()
	if err := Serve(t.Context(), strings.NewReader(""), io.Discard, srv, Options{}); err == nil {
		t.Error("want an error for the second session")
	}
	first.endInput()
	if err := Serve(t.Context(), strings.NewReader(""), io.Discard, srv, Options{}); err != nil {
		t.Errorf("after the first session has ended: %v", err)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

type errorWriter struct{ err error }

func (w errorWriter) Write([]byte) (int, error) { return 0, w.err }

// The audit names the caller, so a handler must find the client's name in either era.
func TestAHandlerFindsTheClientsNameAndVersion(t *testing.T) {
	srv := newServer(nil)
	srv.AddTool(mcp.NewTool("who"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
		if !ok {
			return mcp.NewToolResultText("nobody"), nil
		}
		text := session.GetClientInfo().Name + " speaks " + server.RequestProtocolVersion(ctx)
		if session.GetClientCapabilities().Sampling != nil {
			text += " and samples"
		}
		return mcp.NewToolResultText(text), nil
	})
	for name, tt := range map[string]struct{ input, want string }{
		"legacy": {
			strings.Replace(initializeLine, `"capabilities":{}`, `"capabilities":{"sampling":{}}`, 1) + "\n" +
				callTool("1", "who", `{}`),
			"t speaks 2025-11-25 and samples",
		},
		"modern": {
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","_meta":{` +
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
				`"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}}}`,
			"m speaks 2026-07-28",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := serveAll(t, srv, Options{}, tt.input)
			if answer := byID(t, got, "1"); !strings.Contains(answer.line, `"`+tt.want+`"`) {
				t.Errorf("want %q, got %s", tt.want, answer.line)
			}
		})
	}
}

func TestTheClientSetsTheLevelOfLogMessages(t *testing.T) {
	srv := server.NewMCPServer("test", "1", server.WithLogging())
	srv.AddTool(mcp.NewTool("log"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		message := mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "test", "x")
		return mcp.NewToolResultText("done"), srv.SendLogMessageToClient(ctx, message)
	})
	quiet := serveAll(t, srv, Options{}, initializeLine+"\n"+callTool("1", "log", `{}`))
	if len(quiet) != 2 {
		t.Errorf("by default only errors are sent, got %q", lines(quiet))
	}
	loud := serveAll(t, srv, Options{}, initializeLine+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}`+"\n"+callTool("1", "log", `{}`))
	if len(loud) != 4 || loud[2].Method != "notifications/message" {
		t.Errorf("want the log message before the answer, got %q", lines(loud))
	}
}

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
		wantTook(t, begin, time.Minute)
		g.wantEnded(t, errShutdown)
		if byID(t, rest, "1").Error != nil {
			t.Errorf("a handler that returns when cancelled is answered as usual: %q", lines(rest))
		}
		wantReason(t, byID(t, rest, "2"), "shutdown")
		seen.wantOne(t, ReasonShutdown, "2", "")
	})
}

// A context ends before those made of it do. A call that gets its place in between is refused like the others.
func TestACallDoesNotStartBetweenTheEndOfTheServerAndThatOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen rejections
		l := newLoop(t.Context(), io.Discard, newServer(nil), Options{Workers: 1, OnReject: seen.hook})
		go l.out.writeLoop()
		defer close(l.out.quit)
		ctx, cancel := context.WithCancelCause(t.Context())
		l.cut(errShutdown)
		raw := []byte(callTool("1", "echo", `{}`))
		env, refused := inspect(frame{raw: raw, size: int64(len(raw))}, 1<<20, func(requestID) bool { return false })
		if refused != nil {
			t.Fatalf("a proper call was refused: %+v", refused)
		}
		env.to = l.out
		l.calls.admit(&runningCall{env: env, raw: raw, ctx: ctx, cancel: cancel, connection: newCallConnection(l.connection)})
		synctest.Wait()
		seen.wantOne(t, ReasonShutdown, "", "")
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
		wantTook(t, begin, time.Minute+unwindTime)
		for _, id := range []string{"1", "2"} {
			wantReason(t, byID(t, rest, id), "shutdown")
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
		rest := must.Get(c.finish())(t)
		if byID(t, rest, "1").Error != nil {
			t.Errorf("the running call was not finished: %q", lines(rest))
		}
		wantReason(t, byID(t, rest, "2"), "shutdown")
		seen.wantOne(t, ReasonShutdown, "2", "")
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
		must.Get(c.finish())(t)
		wantTook(t, begin, 5*time.Second)
		g.wantEnded(t, errShutdown)
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
		wantTook(t, begin, time.Minute+5*time.Second)
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

func TestAClientThatStopsReadingKeepsNoOtherWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := mcpio.NewTurns(1)
		silent := start(t, t.Context(), newServer(nil), Options{Turns: one})
		silent.send(pingLine) // the answer is not read
		synctest.Wait()
		other := start(t, t.Context(), newServer(nil), Options{Turns: one})
		other.send(pingLine)
		other.next()
		other.endInput()
		_ = silent.out.Close()
		_ = silent.in.Close()
		<-silent.result
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
				wantTook(t, begin, 30*time.Second)
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
	must.Do(t, Serve(ctx, reads, io.Discard, newServer(nil), Options{}))
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
