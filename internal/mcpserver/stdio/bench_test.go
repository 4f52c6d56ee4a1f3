package stdio

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

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
		if _, err := io.WriteString(inWrite, line(id)+"\n"); err != nil {
			b.Fatal(err)
		}
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
				if err := Serve(b.Context(), strings.NewReader(line), io.Discard, srv, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
