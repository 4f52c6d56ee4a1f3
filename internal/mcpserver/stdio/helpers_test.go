package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// message is a line of output as a client sees it.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  map[string]any  `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
	line string
}

// decodeMessage fails the test unless line is one JSON-RPC message of a server to its client.
func decodeMessage(t testing.TB, line string) message {
	t.Helper()
	var m message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("output line is not JSON: %v\n%s", err, line)
	}
	m.line = line
	kinds := 0
	for _, is := range []bool{m.Method != "", m.Result != nil, m.Error != nil} {
		if is {
			kinds++
		}
	}
	if m.JSONRPC != "2.0" || kinds != 1 || (m.Method == "") != (m.ID != nil) {
		t.Fatalf("output line is not a JSON-RPC message: %s", line)
	}
	return m
}

// serveAll feeds input and end of input to Serve and returns what came out.
func serveAll(t testing.TB, srv *server.MCPServer, opts Options, input string) []message {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, Serve(t.Context(), strings.NewReader(input), &out, srv, opts))
	return decodeAll(t, out.String())
}

// serveUntil is serveAll with an input that ends when something was said: what waits in line at the end of input may
// not be started any more.
func serveUntil(t testing.TB, srv *server.MCPServer, opts Options, input, said string) []message {
	t.Helper()
	in, more := io.Pipe()
	out := &watched{text: []byte(said), seen: func() { _ = more.Close() }}
	go func() { _, _ = io.WriteString(more, input+"\n") }()
	must.Do(t, Serve(t.Context(), in, out, srv, opts))
	return decodeAll(t, out.String())
}

// watched collects output; seen is called when it has the awaited text.
type watched struct {
	bytes.Buffer

	text []byte
	seen func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if bytes.Contains(w.Bytes(), w.text) {
		w.seen()
	}
	return n, err
}

func decodeAll(t testing.TB, text string) (messages []message) {
	t.Helper()
	for line := range strings.Lines(text) {
		messages = append(messages, decodeMessage(t, strings.TrimSuffix(line, "\n")))
	}
	return messages
}

// byID finds the one answer under an id.
func byID(t testing.TB, messages []message, id string) message {
	t.Helper()
	var found []message
	for _, m := range messages {
		if string(m.ID) == id {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		t.Fatalf("want one answer under id %s, got %d in %v", id, len(found), lines(messages))
	}
	return found[0]
}

func lines(messages []message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.line)
	}
	return all
}

// wantCount holds that there are so many messages.
func wantCount(t testing.TB, messages []message, want int) {
	t.Helper()
	if len(messages) != want {
		t.Errorf("want %d messages, got %q", want, lines(messages))
	}
}

// wantReason holds that a message is a refusal for the reason.
func wantReason(t testing.TB, m message, reason string) {
	t.Helper()
	if m.Error == nil || m.Error.Data["reason"] != reason {
		t.Errorf("want a refusal for the reason %s, got %s", reason, m.line)
	}
}

// wantTook holds how long something took by the clock of synctest.
func wantTook(t testing.TB, begin time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(begin); took != want {
		t.Errorf("it took %v, want %v", took, want)
	}
}

// client talks to a running Serve over pipes.
type client struct {
	t      testing.TB
	in     *io.PipeWriter
	out    *io.PipeReader
	lines  *bufio.Scanner
	result chan error
}

func start(t testing.TB, ctx context.Context, srv *server.MCPServer, opts Options) *client {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	c := &client{t: t, in: inWrite, out: outRead, lines: bufio.NewScanner(outRead), result: make(chan error, 1)}
	c.lines.Buffer(nil, 16<<20)
	go func() {
		err := Serve(ctx, inRead, outWrite, srv, opts)
		_ = outWrite.Close()
		c.result <- err
	}()
	t.Cleanup(func() { _ = inWrite.Close() })
	return c
}

func (c *client) send(line string) {
	c.t.Helper()
	must.Get(io.WriteString(c.in, line+"\n"))(c.t)
}

func (c *client) next() message {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("output ended: %v", c.lines.Err())
	}
	return decodeMessage(c.t, c.lines.Text())
}

// finish reads the rest of the output and returns it with the result of Serve. The caller has ended the session.
func (c *client) finish() ([]message, error) {
	c.t.Helper()
	var rest []message
	for c.lines.Scan() {
		rest = append(rest, decodeMessage(c.t, c.lines.Text()))
	}
	return rest, <-c.result
}

// endInput closes the input and expects a clean end; it returns the rest of the output.
func (c *client) endInput() []message {
	c.t.Helper()
	_ = c.in.Close()
	return must.Get(c.finish())(c.t)
}

// gate is a tool that reports its start and then waits to be released.
type gate struct {
	started chan string // argument "tag" of each call that started
	release chan struct{}
	ended   chan error // the cause of the context when the handler returned
	deaf    bool       // ignores its context
}

func newGate() *gate {
	return &gate{started: make(chan string, 64), release: make(chan struct{}), ended: make(chan error, 64)}
}

func (g *gate) handle(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	g.started <- argument(ctx, "tag", "")
	cancelled := ctx.Done()
	if g.deaf {
		cancelled = nil
	}
	select {
	case <-g.release:
	case <-cancelled:
	}
	g.ended <- context.Cause(ctx)
	return mcp.NewToolResultText("released"), nil
}

// wantEnded holds that a call that was under way has ended for the cause.
func (g *gate) wantEnded(t testing.TB, want error) {
	t.Helper()
	if cause := <-g.ended; !errors.Is(cause, want) {
		t.Errorf("want %v as the cause, got %v", want, cause)
	}
}

// argument is an argument of the call, or fallback.
func argument[T any](ctx context.Context, name string, fallback T) T {
	var all map[string]json.RawMessage
	value := fallback
	if json.Unmarshal(Arguments(ctx), &all) != nil || json.Unmarshal(all[name], &value) != nil {
		return fallback
	}
	return value
}

// newServer has the tools below and, unless g is nil, g as gate.
func newServer(g *gate) *server.MCPServer {
	srv := server.NewMCPServer("test", "1", server.WithToolCapabilities(false))
	add := func(name string, handler server.ToolHandlerFunc) { srv.AddTool(mcp.NewTool(name), handler) }
	add("echo", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(argument(ctx, "text", "")), nil
	})
	add("raw", func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(len(req.GetArguments()), " ", string(Arguments(ctx)))), nil
	})
	add("notes", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range min(argument(ctx, "count", 0), 100_000) {
			_ = srv.SendNotificationToClient(ctx, "notifications/progress",
				map[string]any{"progressToken": argument(ctx, "tag", ""), "progress": i})
		}
		return mcp.NewToolResultText("done"), nil
	})
	add("panic", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("hunter2") })
	add("fail", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("hunter2")
	})
	add("html", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("a < b && c > d \u2028"), nil
	})
	add("nothing", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: func() {}}, nil
	})
	if g != nil {
		add("gate", g.handle)
	}
	return srv
}

func callTool(id, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`,
		id, tool, arguments)
}

const (
	initializeLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	pingLine        = `{"jsonrpc":"2.0","id":"ping","method":"ping"}`
)

// rejections gathers what OnReject saw.
type rejections struct {
	mu  sync.Mutex
	all []Rejection
}

func (r *rejections) hook(_ context.Context, rejection Rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rejection)
}

// wantOne holds that one message was refused, for the reason; id and tool count if they are given.
func (r *rejections) wantOne(t testing.TB, reason Reason, id, tool string) {
	t.Helper()
	all := r.list()
	if len(all) != 1 || all[0].Reason != reason || id != "" && all[0].ID != id || tool != "" && all[0].Tool != tool {
		t.Errorf("want one report of %s, id %q, tool %q, got %+v", reason, id, tool, all)
	}
}

func (r *rejections) list() []Rejection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Rejection(nil), r.all...)
}

func deafTool() mcp.Tool { return mcp.NewTool("deaf") }

// BenchmarkServeToolsList measures messages through the whole loop, mcp-go's part included.
func BenchmarkServeToolsList(b *testing.B) {
	benchmark(b, func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id) })
}

// BenchmarkServeToolsCall measures calls that do nothing.
func BenchmarkServeToolsCall(b *testing.B) {
	benchmark(b, func(id int) string { return callTool(fmt.Sprint(id), "echo", `{"text":"hi"}`) })
}

// BenchmarkServeLargeMessage measures a call of nearly the largest size.
func BenchmarkServeLargeMessage(b *testing.B) {
	line := callTool("1", "echo", padTo(4<<20, callTool("1", "echo", "")))
	b.SetBytes(int64(len(line)))
	benchmark(b, func(id int) string { return line })
}

func benchmark(b *testing.B, line func(id int) string) {
	srv := newServer(nil)
	in, inWrite := io.Pipe()
	answers := newLineCounter()
	done := make(chan error, 1)
	go func() { done <- Serve(b.Context(), in, answers, srv, Options{}) }()
	b.ReportAllocs()
	for id := range b.N {
		must.Get(io.WriteString(inWrite, line(id)+"\n"))(b)
		<-answers.each
	}
	_ = inWrite.Close()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// lineCounter announces each line written to it.
type lineCounter struct{ each chan struct{} }

func newLineCounter() lineCounter { return lineCounter{make(chan struct{}, 16)} }

func (c lineCounter) Write(p []byte) (int, error) {
	for range bytes.Count(p, []byte("\n")) {
		c.each <- struct{}{}
	}
	return len(p), nil
}

// BenchmarkServeHostile measures what a mebibyte of each shape costs the loop, mcp-go's part included, with a handler
// that does nothing; docs/explain/benchmarks.md has the limits.
func BenchmarkServeHostile(b *testing.B) {
	times := func(s string) string { return strings.TrimSuffix(strings.Repeat(s, (1<<20)/len(s)), ",") }
	message := func(more string) string { return `{"jsonrpc":"2.0","id":1,"method":"tools/call",` + more + `}` }
	arguments := func(s string) string { return callTool("1", "quiet", s) }
	for name, line := range map[string]string{
		"unknown_keys":            arguments("{" + times(`"unknown":1,`) + "}"),
		"brackets":                arguments(`{"x":` + times("[")),
		"empty_arrays":            arguments(`{"x":[` + times("[],") + "]}"),
		"numbers":                 arguments(`{"x":[` + times("1,") + "]}"),
		"empty_strings":           arguments(`{"x":[` + times(`"",`) + "]}"),
		"a_long_number":           arguments(`{"x":` + times("9") + "}"),
		"escapes":                 arguments(`{"x":"` + times(`\u0041`) + `"}`),
		"short_escapes":           arguments(`{"x":"` + times(`\n`) + `"}`),
		"a_long_key":              arguments(`{"` + times("k") + `":1}`),
		"members_of_the_message":  message(times(`"x":1,`)),
		"members_like_the_method": message(times(`"METHOD":1,`)),
		"ids":                     message(times(`"id":1,`)),
		"members_of_params":       message(`"params":{` + times(`"NAME":1,`) + "}"),
		"meta":                    message(`"params":{"name":"quiet","_meta":{` + times(`"x":1,`) + "}}"),
		"a_response":              `{"jsonrpc":"2.0","id":1,"result":[` + times("[],") + "]}",
		"rubbish":                 times("x"),
	} {
		b.Run(name, func(b *testing.B) {
			srv := newServer(nil)
			srv.AddTool(mcp.NewTool("quiet"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText(""), nil
			})
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				must.Do(b, Serve(b.Context(), strings.NewReader(line), io.Discard, srv, Options{}))
			}
		})
	}
}
