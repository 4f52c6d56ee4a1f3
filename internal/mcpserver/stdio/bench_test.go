package stdio

import (
	"bytes"
	"fmt"
	"io"
	"testing"
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
