package stdio

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/base/exchange"
)

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
	messages, over, notes := make(chan exchange.Exchange), make(chan error, 1), &heard{}
	go func() { over <- ServeExchanges(context.Background(), messages, notes, srv, opts) }()
	t.Cleanup(func() {
		close(messages)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return func(ctx context.Context, message string, alone bool) *heard {
		h := &heard{ended: make(chan struct{})}
		messages <- exchange.Exchange{
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
	messages, over := make(chan exchange.Exchange), make(chan error, 1)
	go func() {
		over <- ServeExchanges(context.Background(), messages, &heard{}, srv,
			Options{MaxMessage: 100, OnReject: func(_ context.Context, r Rejection) { rejected = append(rejected, r) }})
	}()
	h := &heard{ended: make(chan struct{})}
	messages <- exchange.Exchange{
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
