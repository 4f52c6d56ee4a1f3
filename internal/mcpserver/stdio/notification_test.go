package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/mcpio"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestProgressComesBeforeTheAnswerOfItsCall(t *testing.T) {
	var input strings.Builder
	input.WriteString(initializeLine + "\n")
	const calls, notes = 200, 20
	for i := range calls {
		input.WriteString(callTool(fmt.Sprint(i+1), "notes", fmt.Sprintf(`{"count":%d,"tag":"%d"}`, notes, i+1)) + "\n")
	}
	progress := map[string]int{}
	answers := 0
	for _, m := range serveAll(t, newServer(nil), Options{QueueLimit: calls}, input.String()) {
		switch {
		case m.Method == "notifications/progress":
			tag := m.Params["progressToken"].(string)
			if at := int(m.Params["progress"].(float64)); at != progress[tag] {
				t.Fatalf("call %s: progress %d came as number %d", tag, at, progress[tag])
			}
			progress[tag]++
		case string(m.ID) != "0":
			answers++
			if progress[string(m.ID)] != notes {
				t.Fatalf("call %s was answered after %d of %d notifications", m.ID, progress[string(m.ID)], notes)
			}
		}
	}
	if answers != calls {
		t.Errorf("want %d answers, got %d", calls, answers)
	}
}

func TestAFloodOfNotificationsNeitherBlocksNorOvertakes(t *testing.T) {
	got := serveAll(t, newServer(nil), Options{},
		initializeLine+"\n"+callTool("1", "notes", `{"count":100000}`)+"\n"+callTool("2", "echo", `{}`))
	byID(t, got, "2")
	answered := false
	for _, m := range got {
		if answered && m.Method != "" {
			t.Fatal("a notification came after the answer")
		}
		answered = answered || string(m.ID) == "1"
	}
	if !answered {
		t.Error("the call was not answered")
	}
}

// The notification that a stray goroutine of a handler sends after the answer is dropped.
func TestWhatAHandlerSendsAfterItsReturnIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(nil)
		late := make(chan struct{})
		srv.AddTool(mcp.NewTool("stray"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			go func() {
				<-late
				_ = srv.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progress": 1})
			}()
			return mcp.NewToolResultText("done"), nil
		})
		c := start(t, t.Context(), srv, Options{})
		c.send(initializeLine)
		c.next()
		c.send(callTool("1", "stray", `{}`))
		c.next()
		close(late)
		synctest.Wait()
		wantCount(t, c.endInput(), 0)
	})
}

func TestNotificationsToAllClientsAreWritten(t *testing.T) {
	srv := newServer(nil)
	c := start(t, t.Context(), srv, Options{})
	c.send(initializeLine)
	c.next()
	srv.SendNotificationToAllClients("notifications/message", map[string]any{"data": "x"})
	must.Equal(t, c.next().Method, "notifications/message")
	c.endInput()
}

func TestAnOpenSubscriptionNeitherTakesAWorkerNorDelaysTheEnd(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{` +
		`"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	srv := server.NewMCPServer("test", "1", server.WithToolCapabilities(true))
	srv.AddTool(mcp.NewTool("echo"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("hi"), nil
	})
	c := start(t, t.Context(), srv, Options{Workers: 1})
	for i := range maxStreams {
		c.send(fmt.Sprintf(listen, i))
		must.Equal(t, c.next().Method, "notifications/subscriptions/acknowledged")
	}
	c.send(fmt.Sprintf(listen, 99))
	wantReason(t, c.next(), "busy")
	c.send(callTool("50", "echo", `{}`))
	if m := c.next(); string(m.ID) != "50" || m.Error != nil {
		t.Errorf("want the result of the call, got %s", m.line)
	}
	wantCount(t, c.endInput(), maxStreams)
}

// mcp-go can also address the session by its id; such a notification keeps its place before the answer too.
func TestANotificationByTheSessionsIdComesBeforeTheAnswer(t *testing.T) {
	srv := newServer(nil)
	srv.AddTool(mcp.NewTool("by-id"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := srv.SendNotificationToSpecificClient("stdio", "notifications/message", map[string]any{"data": "x"})
		return mcp.NewToolResultText("done"), err
	})
	for range 200 {
		got := serveAll(t, srv, Options{}, initializeLine+"\n"+callTool("1", "by-id", `{}`))
		if len(got) != 3 || got[1].Method == "" || string(got[2].ID) != "1" {
			t.Fatalf("want handshake, notification, answer; got %q", lines(got))
		}
	}
}

func TestACancelledCallSendsNoMoreNotifications(t *testing.T) {
	srv := newServer(nil)
	started := make(chan struct{})
	srv.AddTool(mcp.NewTool("late"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(started)
		<-ctx.Done()
		err := srv.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progress": 1})
		return mcp.NewToolResultText("done"), err
	})
	c := start(t, t.Context(), srv, Options{})
	c.send(initializeLine)
	c.next()
	c.send(callTool("1", "late", `{}`))
	<-started
	c.send(cancelLine("1"))
	wantCount(t, c.endInput(), 0)
}

func TestANotificationThatCannotBeEncodedIsLeftOut(t *testing.T) {
	srv := newServer(nil)
	bad := map[string]any{"progress": func() {}}
	srv.AddTool(mcp.NewTool("bad"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		srv.SendNotificationToAllClients("notifications/progress", bad)
		return mcp.NewToolResultText("done"), srv.SendNotificationToClient(ctx, "notifications/progress", bad)
	})
	got := serveAll(t, srv, Options{}, initializeLine+"\n"+callTool("1", "bad", `{}`))
	if len(got) != 2 || byID(t, got, "1").Error != nil {
		t.Errorf("want the answers only, got %q", lines(got))
	}
}

// The writer is started late, when notifications and a line are waiting side by side.
func TestAWaitingLineComesAfterTheNotificationsThatWereSentBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 64
		notes := make(chan mcp.JSONRPCNotification, waiting)
		for range waiting {
			notes <- mcp.JSONRPCNotification{JSONRPC: "2.0", Notification: mcp.Notification{Method: "note"}}
		}
		var out bytes.Buffer
		w := newWriter(&out, notes, nil, slog.New(slog.DiscardHandler))
		sent := make(chan struct{})
		go func() { w.deliver([]byte("line\n")); close(sent) }()
		synctest.Wait() // until the line is offered
		go w.writeLoop()
		<-sent
		close(w.quit)
		<-w.done
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(got) != waiting+1 || got[waiting] != "line" {
			t.Errorf("want the line last of %d, got %q", waiting+1, got)
		}
	})
}

func TestNothingIsWrittenAfterAFailedWrite(t *testing.T) {
	out := &failingOnce{}
	w := newWriter(out, nil, nil, slog.New(slog.DiscardHandler))
	go w.writeLoop()
	for range 3 {
		w.deliver([]byte("line\n"))
	}
	<-w.done
	if out.writes != 1 || w.err == nil {
		t.Errorf("want one attempt and its error, got %d and %v", out.writes, w.err)
	}
}

type failingOnce struct{ writes int }

func (f *failingOnce) Write([]byte) (int, error) {
	f.writes++
	return 0, errors.New("broken")
}

// heard collects the output of an exchange.
type heard struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ended chan struct{}
}

func (h *heard) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(line)
}

func (h *heard) says(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		text := h.text.String()
		h.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q is not in %q", want, text)
		}
	}
}

// exchanging serves a server's exchanges until the test ends, and hands messages over.
func exchanging(t *testing.T, srv *server.MCPServer,
	opts Options) (hand func(ctx context.Context, message string, alone bool) *heard, notes *heard) {
	t.Helper()
	messages, over, notes := make(chan mcpio.Exchange), make(chan error, 1), &heard{}
	go func() { over <- ServeExchanges(context.Background(), messages, notes, srv, opts) }()
	t.Cleanup(func() {
		close(messages)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return func(ctx context.Context, message string, alone bool) *heard {
		h := &heard{ended: make(chan struct{})}
		messages <- mcpio.Exchange{
			Message: []byte(message), Context: ctx, Alone: alone, End: func() { close(h.ended) },
			Say: func(line []byte) { _, _ = h.Write(line) },
		}
		return h
	}, notes
}

func TestWhatIsSentToAllClientsReachesThoseStreamsThatAskedForIt(t *testing.T) {
	srv := server.NewMCPServer("test", "1", server.WithToolCapabilities(true))
	hand, notes := exchanging(t, srv, Options{})
	listen := func(id, filter string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter +
			`,"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	ctx, leave := context.WithCancel(context.Background())
	first, second := hand(ctx, listen("1", `{"toolsListChanged":true}`), true), hand(context.Background(),
		listen("1", `{"toolsListChanged":true}`), true)
	none := hand(context.Background(), listen("2", `{}`), true)
	<-none.ended
	for _, h := range []*heard{first, second} {
		h.says(t, "notifications/subscriptions/acknowledged")
	}
	srv.AddTool(mcp.NewTool("new"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(""), nil
	})
	for _, h := range []*heard{first, second} {
		h.says(t, `notifications/tools/list_changed`)
		h.says(t, `"io.modelcontextprotocol/subscriptionId":1`)
	}
	if none.text.Len() > 0 && strings.Contains(none.text.String(), "list_changed") {
		t.Errorf("who asked for nothing hears %s", none.text.String())
	}
	_ = notes
	leave()
	<-first.ended
	select {
	case <-second.ended:
		t.Error("the stream of another client ended, too")
	default:
	}
}

func TestExchangesHaveTheirIDsForThemselvesOrNot(t *testing.T) {
	release := make(chan struct{})
	srv := server.NewMCPServer("test", "1", server.WithToolCapabilities(true))
	srv.AddTool(mcp.NewTool("wait"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-release
		return mcp.NewToolResultText("done"), nil
	})
	hand, _ := exchanging(t, srv, Options{})
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}}`
	calls := []*heard{hand(context.Background(), call, true), hand(context.Background(), call, true), hand(nil, call, false)} //nolint:staticcheck // a nil context is intended
	again := hand(nil, call, false)                                                                                           //nolint:staticcheck // as above
	<-again.ended
	again.says(t, "still in flight")
	close(release)
	for i, h := range calls {
		<-h.ended
		if got := h.text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"id":7`) ||
			!strings.Contains(got, "done") {
			t.Errorf("call %d: %s", i, got)
		}
	}
}

func TestAnExchangeThatIsTooLongIsRefusedAndReported(t *testing.T) {
	var rejected []Rejection
	srv := server.NewMCPServer("test", "1")
	messages, over := make(chan mcpio.Exchange), make(chan error, 1)
	go func() {
		over <- ServeExchanges(context.Background(), messages, &heard{}, srv,
			Options{MaxMessage: 100, OnReject: func(_ context.Context, r Rejection) { rejected = append(rejected, r) }})
	}()
	h := &heard{ended: make(chan struct{})}
	messages <- mcpio.Exchange{
		Message: []byte(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"a":"`),
		Size:    5 << 20,
		Say:     func(line []byte) { _, _ = h.Write(line) }, End: func() { close(h.ended) },
	}
	<-h.ended
	close(messages)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if got := h.text.String(); !strings.Contains(got, `"id":3`) || !strings.Contains(got, fmt.Sprint(5<<20)) {
		t.Errorf("answered with %s", got)
	}
	if len(rejected) != 1 || rejected[0].Reason != ReasonTooLarge || rejected[0].Size != 5<<20 || rejected[0].Tool != "x" {
		t.Errorf("reported %+v", rejected)
	}
}
