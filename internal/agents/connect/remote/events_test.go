package remote

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// FuzzEvents reads anything as a stream: whatever the sizes of its parts, only what `data:` stands before comes through.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: {\"a\":1}\n\n: still here\n\ndata: b\n\n"))
	f.Add([]byte("data:x\nevent: y\nid: 3\n\ndata"))
	f.Add([]byte(strings.Repeat("data: "+strings.Repeat("y", 40000)+"\n\n"+strings.Repeat(":", 40000)+"\n", 3)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var want bytes.Buffer
		for _, line := range bytes.SplitAfter(stream, []byte("\n")) {
			if rest, found := bytes.CutPrefix(line, []byte("data:")); found {
				want.Write(bytes.TrimPrefix(rest, []byte(" ")))
			}
		}
		for name, in := range map[string]io.Reader{"whole": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream))} {
			e := newEvents(io.NopCloser(in), time.Hour, func(error) {})
			if got, err := io.ReadAll(e); err != nil || !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%s: read %.100q, %v; want %.100q", name, got, err, want.Bytes())
			}
			if err := e.close(); err != nil {
				t.Error(err)
			}
		}
	})
}
