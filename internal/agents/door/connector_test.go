//go:build unix

package door_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/mcpserver/stdio"
)

// tools is an MCP server behind a door: size tells how long its argument is, with a notification of progress before;
// wait waits for the end of its context, and says why it ended.
type tools struct {
	started chan struct{}
	ended   chan error
}

func (s tools) serve(ctx context.Context, _ door.Rights, c door.Client) error {
	m := server.NewMCPServer("tools", "1")
	m.AddTool(mcp.NewTool("size"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var arguments struct{ Text string }
		_ = json.Unmarshal(stdio.Arguments(ctx), &arguments) // without text there is none
		if r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil {
			_ = m.SendNotificationToClient(ctx, "notifications/progress",
				map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": 1})
		}
		return mcp.NewToolResultText(strconv.Itoa(len(arguments.Text))), nil
	})
	m.AddTool(mcp.NewTool("wait"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.started <- struct{}{}
		<-ctx.Done()
		s.ended <- context.Cause(ctx)
		return mcp.NewToolResultText("ended"), nil
	})
	return stdio.Serve(ctx, c.In, c.Out, m, stdio.Options{Gone: c.Gone})
}

// connected is a client behind a connector.
type connected struct {
	in    *io.PipeWriter
	lines *bufio.Reader
	ended chan error
}

func (w *world) connector() connected {
	w.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := connected{inW, bufio.NewReader(outR), make(chan error, 1)}
	go func() {
		err := connect.Arguments{Address: w.door.Address()}.Run(w.t.Context(), inR, outW, nil)
		_ = outW.Close()
		c.ended <- err
	}()
	w.t.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		if _, err := io.WriteString(inW, line+"\n"); err != nil {
			w.t.Fatal(err)
		}
	}
	c.hears(w.t, `"id":0`)
	return c
}

func (c connected) call(t *testing.T, id int, tool, arguments string) {
	t.Helper()
	if _, err := fmt.Fprintf(c.in,
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":"p%d"}}}`+
			"\n",
		id, tool, arguments, id); err != nil {
		t.Fatal(err)
	}
}

func (c connected) hears(t *testing.T, want ...string) {
	t.Helper()
	line, err := c.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range want {
		if !strings.Contains(line, part) {
			t.Errorf("heard %.300s, want %s in it", line, part)
		}
	}
}

func TestAConnectorPassesEverythingThroughTheDoor(t *testing.T) {
	s := tools{make(chan struct{}, 1), make(chan error, 1)}
	w := open(t, settings{serve: s.serve})
	c := w.connector()
	const most = 4<<20 - 200 // bytes of text in a message of 4 MiB
	c.call(t, 1, "size", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", most)))
	c.hears(t, "notifications/progress", `"p1"`)
	c.hears(t, `"id":1`, strconv.Itoa(most))
	c.call(t, 2, "size", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 5<<20)))
	c.hears(t, `"id":2`, `"error"`) // refused by the server, by its own bound
	c.call(t, 3, "wait", `{}`)
	<-s.started
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`+
		"\n"); err != nil {
		t.Fatal(err)
	}
	if cause := <-s.ended; !errors.Is(cause, stdio.ErrCancelledByClient) {
		t.Errorf("the call ended with %v", cause)
	}
	c.call(t, 4, "size", `{"text":"abc"}`) // the next answer is not that of the call that was cancelled
	c.hears(t, "notifications/progress", `"p4"`)
	c.hears(t, `"id":4`, `"3"`)
}

func TestACallUnderWayAtTheEndOfADoorIsAnsweredForByTheConnector(t *testing.T) {
	s := tools{make(chan struct{}, 1), make(chan error, 1)}
	w := open(t, settings{serve: s.serve})
	c := w.connector()
	c.call(t, 1, "wait", `{}`)
	<-s.started
	closed := make(chan error, 1)
	go func() { closed <- w.door.Close() }()
	if cause := <-s.ended; !errors.Is(cause, stdio.ErrClientGone) {
		t.Errorf("the call ended with %v", cause)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	c.hears(t, `"id":1`) // with what the call said, or that its fate is not known
	_ = c.in.Close()     // which the connector notices, though it waits for a door
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}
