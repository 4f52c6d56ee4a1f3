package stdio

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func cancelLine(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"x"}}`, id)
}

func TestPingIsAnsweredWhileEveryWorkerIsBusy(t *testing.T) {
	g := newGate()
	c := start(t, t.Context(), newServer(g), Options{Workers: 2})
	for _, id := range []string{"1", "2", "3"} {
		c.send(callTool(id, "gate", `{}`))
	}
	<-g.started
	<-g.started
	c.send(pingLine)
	if first := c.next(); string(first.ID) != `"ping"` {
		t.Errorf("want the answer to ping first, got %s", first.line)
	}
	close(g.release)
	wantCount(t, c.endInput(), 3)
}

func TestARunningCallIsCancelledAndNotAnswered(t *testing.T) {
	g := newGate()
	c := start(t, t.Context(), newServer(g), Options{})
	c.send(callTool(`"a"`, "gate", `{}`))
	<-g.started
	c.send(cancelLine(`"b"`)) // another id
	c.send(cancelLine(`"a"`))
	g.wantEnded(t, ErrCancelledByClient)
	c.send(pingLine)
	if rest := c.endInput(); len(rest) != 1 || string(rest[0].ID) != `"ping"` {
		t.Errorf("want the answer to ping only, got %q", lines(rest))
	}
}

func TestACallThatIgnoresItsCancellationIsNotAnsweredEither(t *testing.T) {
	g := newGate()
	g.deaf = true
	c := start(t, t.Context(), newServer(g), Options{})
	c.send(callTool("1", "gate", `{}`))
	<-g.started
	c.send(cancelLine("1"))
	c.send(pingLine)
	c.next()
	close(g.release)
	wantCount(t, c.endInput(), 0)
}

func TestANumberDoesNotCancelTheStringOfItsDigits(t *testing.T) {
	g := newGate()
	c := start(t, t.Context(), newServer(g), Options{})
	c.send(callTool("7", "gate", `{}`))
	<-g.started
	c.send(cancelLine(`"7"`))
	c.send(pingLine)
	c.next()
	close(g.release)
	if rest := c.endInput(); len(rest) != 1 || string(rest[0].ID) != "7" {
		t.Errorf("want the answer to 7, got %q", lines(rest))
	}
}

func TestAQueuedCallIsCancelledBeforeItStarts(t *testing.T) {
	g := newGate()
	var seen rejections
	c := start(t, t.Context(), newServer(g), Options{Workers: 1, OnReject: seen.hook})
	c.send(callTool("1", "gate", `{"tag":"first"}`))
	c.send(callTool("2", "gate", `{"tag":"second"}`))
	c.send(callTool("3", "gate", `{"tag":"third"}`))
	c.send(cancelLine("2"))
	c.send(pingLine)
	c.next()
	close(g.release)
	rest := c.endInput()
	if len(rest) != 2 {
		t.Errorf("want the answers to 1 and 3, got %q", lines(rest))
	}
	byID(t, rest, "1")
	byID(t, rest, "3")
	close(g.started)
	var tags []string
	for tag := range g.started {
		tags = append(tags, tag)
	}
	must.Equal(t, tags, []string{"first", "third"})
	seen.wantOne(t, ReasonCancelled, "2", "gate")
}

func TestCancellingAQueuedCallMakesRoomInTheQueue(t *testing.T) {
	g := newGate()
	c := start(t, t.Context(), newServer(g), Options{Workers: 1, QueueLimit: 1})
	c.send(callTool("1", "gate", `{}`))
	for id := range 10 {
		c.send(callTool(fmt.Sprint(100+id), "echo", `{}`))
		c.send(cancelLine(fmt.Sprint(100 + id)))
	}
	c.send(callTool("2", "echo", `{}`))
	c.send(pingLine)
	if m := c.next(); string(m.ID) != `"ping"` {
		t.Errorf("want no refusal, got %s", m.line)
	}
	close(g.release)
	wantCount(t, c.endInput(), 2)
}

// A cancellation right behind its call meets it queued, starting or running: never an answer, and the call is either
// handled or reported, never lost.
func TestACancellationRightBehindItsCallNeverLeavesAnAnswer(t *testing.T) {
	for range 200 {
		g := newGate()
		var seen rejections
		got := serveAll(t, newServer(g), Options{OnReject: seen.hook}, callTool("1", "gate", `{}`)+"\n"+cancelLine("1"))
		if len(got) != 0 {
			t.Fatalf("want no answer, got %q", lines(got))
		}
		if handled, reported := len(g.started), len(seen.list()); handled+reported != 1 {
			t.Fatalf("the call was handled %d times and reported %d times", handled, reported)
		}
	}
}

func TestAnIdInFlightIsRefusedWithoutHarmToItsOwner(t *testing.T) {
	g := newGate()
	var seen rejections
	c := start(t, t.Context(), newServer(g), Options{Workers: 1, MaxMessage: 4096, OnReject: seen.hook})
	c.send(callTool("1", "gate", `{}`))
	c.send(callTool("2", "gate", `{}`)) // waits
	<-g.started
	for _, intruder := range []string{
		callTool("1", "gate", `{}`),
		callTool("2", "echo", `{}`),
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`,
		callTool("1", "gate", `{"x":"`+strings.Repeat("x", 5000)+`"}`),
	} {
		c.send(intruder)
		if m := c.next(); string(m.ID) != "null" || m.Error == nil || m.Error.Code != -32600 && m.Error.Code != -32602 {
			t.Errorf("want a refusal without id for %.80s, got %s", intruder, m.line)
		}
	}
	close(g.release)
	rest := c.endInput()
	if len(rest) != 2 || byID(t, rest, "1").Error != nil || byID(t, rest, "2").Error != nil {
		t.Errorf("want the two real answers, got %q", lines(rest))
	}
	if got := seen.list()[0]; got.Reason != ReasonDuplicateID || got.ID != "1" || got.Tool != "gate" {
		t.Errorf("want a report of the duplicate id, got %+v", got)
	}
}

func TestAnIdIsFreeAgainAfterItsAnswer(t *testing.T) {
	c := start(t, t.Context(), newServer(nil), Options{})
	for range 50 {
		c.send(callTool("1", "echo", `{}`))
		if m := c.next(); string(m.ID) != "1" || m.Error != nil {
			t.Fatalf("want a result, got %s", m.line)
		}
	}
	c.endInput()
}

func TestAFullQueueAnswersThatTheServerIsBusy(t *testing.T) {
	big := `{"x":"` + strings.Repeat("x", 900) + `"}`
	for name, tt := range map[string]struct {
		opts      Options
		arguments string
		fits      int // calls in all that are accepted: one running, the others waiting
	}{
		"by number": {Options{Workers: 1, QueueLimit: 2}, `{}`, 3},
		"by bytes":  {Options{Workers: 1, MaxMessage: 1024}, big, 5},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			var seen rejections
			tt.opts.OnReject = seen.hook
			c := start(t, t.Context(), newServer(g), tt.opts)
			for i := range tt.fits {
				c.send(callTool(fmt.Sprint(i), "gate", tt.arguments))
			}
			c.send(callTool("99", "gate", tt.arguments))
			m := c.next()
			if string(m.ID) != "99" || m.Error == nil || m.Error.Code != -32000 || m.Error.Data["reason"] != "busy" {
				t.Fatalf("want busy, got %s", m.line)
			}
			close(g.release)
			wantCount(t, c.endInput(), tt.fits)
			seen.wantOne(t, ReasonBusy, "", "gate")
		})
	}
}

const readLine = `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"x://a"}}`

func TestAResourceOrPromptThatIsSlowHoldsNothingUpAndIsCancelled(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	slow := func(ctx context.Context) error {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return ctx.Err()
	}
	srv := newServer(newGate())
	srv.AddResourceTemplate(mcp.NewResourceTemplate("x://{a}", "x"),
		func(ctx context.Context, _ mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return nil, slow(ctx)
		})
	srv.AddPrompt(mcp.NewPrompt("ask"),
		func(ctx context.Context, _ mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return nil, slow(ctx) })
	c := start(t, t.Context(), srv, Options{})
	for id, line := range map[string]string{
		"7": readLine, "9": `{"jsonrpc":"2.0","id":9,"method":"prompts/get","params":{"name":"ask"}}`,
	} {
		c.send(line)
		<-began
		c.send(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
		if got := c.next(); string(got.ID) != "8" {
			t.Errorf("answered first: %s", got.line)
		}
		c.send(cancelLine(id))
		<-ended
	}
	wantCount(t, c.endInput(), 0)
}

func TestAHandlerOfAResourceSaysWhatItsClientGets(t *testing.T) {
	srv := newServer(newGate())
	answers := map[string]server.ResourceTemplateHandlerFunc{
		"x": func(ctx context.Context, _ mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return nil, Fail(ctx, mcp.INVALID_PARAMS, "[scope_denied] no", map[string]any{"error": "x"})
		},
		"y": func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return nil, context.DeadlineExceeded
		},
	}
	for scheme, handler := range answers {
		srv.AddResourceTemplate(mcp.NewResourceTemplate(scheme+"://{a}", scheme), handler)
	}
	got := serveAll(t, srv, Options{}, readLine+"\n"+
		`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"y://a"}}`+"\n")
	if e := byID(t, got, "7").Error; e == nil || e.Code != mcp.INVALID_PARAMS || e.Message != "[scope_denied] no" ||
		e.Data["error"] != "x" {
		t.Errorf("%+v", e)
	}
	if e := byID(t, got, "9").Error; e == nil || e.Code != mcp.INTERNAL_ERROR || e.Message != textInternal {
		t.Errorf("an error that shows what is inside: %+v", e)
	}
}
