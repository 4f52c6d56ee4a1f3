package stdio

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const readLine = `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"x://a"}}`

func TestAResourceThatIsSlowHoldsNothingUpAndIsCancelled(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	srv := newServer(newGate())
	srv.AddResourceTemplate(mcp.NewResourceTemplate("x://{a}", "x"),
		func(ctx context.Context, _ mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			close(began)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		})
	c := start(t, t.Context(), srv, Options{})
	c.send(readLine)
	<-began
	c.send(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	if got := c.next(); string(got.ID) != "8" {
		t.Errorf("answered first: %s", got.line)
	}
	c.send(cancelLine("7"))
	<-ended
	if rest := c.endInput(); len(rest) != 0 {
		t.Errorf("a cancelled read is answered: %v", lines(rest))
	}
}

func TestAPromptThatIsSlowHoldsNothingUpAndIsCancelled(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	srv := newServer(newGate())
	srv.AddPrompt(mcp.NewPrompt("ask"), func(ctx context.Context, _ mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	c := start(t, t.Context(), srv, Options{})
	c.send(`{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"ask"}}`)
	<-began
	c.send(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	if got := c.next(); string(got.ID) != "8" {
		t.Errorf("answered first: %s", got.line)
	}
	c.send(cancelLine("7"))
	<-ended
	if rest := c.endInput(); len(rest) != 0 {
		t.Errorf("a cancelled prompt is answered: %v", lines(rest))
	}
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
