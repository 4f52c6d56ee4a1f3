package stdio

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzServe feeds arbitrary bytes. Whatever comes in, Serve ends without an error once the input has ended, every line
// of output is one JSON-RPC message, and no id is answered more often than lines of the input carry it.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		initializeLine + "\n" + initializedLine + "\n" + callTool("1", "echo", `{"text":"hi"}`) + "\n" + pingLine,
		callTool("1", "notes", `{"count":3}`) + "\n" + cancelLine("1") + "\n" + callTool("1", "echo", `{}`),
		callTool("1", "panic", `{}`) + "\r\n\r\n" + callTool("2", "fail", `{}`),
		"[" + pingLine + "]\n{\"id\":1}\n\x00\xff\n" + strings.Repeat("x", 5000) + "\n" + pingLine,
		`{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"echo"}}`,
		`{"method":"tools/call","params":{"name":"x","arguments":{"x":"` + strings.Repeat("x", 5000) + `"}},"id":7}`,
	} {
		f.Add([]byte(seed))
	}
	srv := newServer(nil)
	f.Fuzz(func(t *testing.T, input []byte) {
		const limit = 4096
		var out bytes.Buffer
		opts := Options{MaxMessage: limit, Workers: 2, QueueLimit: 4}
		if err := Serve(t.Context(), bytes.NewReader(input), &out, srv, opts); err != nil {
			t.Fatalf("Serve: %v", err)
		}
		answers := map[string]int{}
		for line := range strings.Lines(out.String()) {
			text, whole := strings.CutSuffix(line, "\n")
			if !whole {
				t.Fatalf("the last line is not complete: %q", line)
			}
			if m := decodeMessage(t, text); m.ID != nil && string(m.ID) != "null" {
				answers[canonicalID(m.ID)]++
			}
		}
		for id, n := range answers {
			if carriers := linesWithID(input, id, limit); n > carriers {
				t.Errorf("%d answers under id %s, which %d lines carry:\n%s", n, id, carriers, out.String())
			}
		}
	})
}

// linesWithID counts the lines that carry the id: as the decoder of the standard library sees it, or, in a line that
// is longer than the limit and need not be JSON, anywhere in its text.
func linesWithID(input []byte, id string, limit int) int {
	n := 0
	for line := range bytes.Lines(input) {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(line, &m) == nil && canonicalID(m.ID) == id || len(line) > limit {
			n++
		}
	}
	return n
}

// canonicalID makes spellings of one id equal.
func canonicalID(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return "s" + s
	}
	if string(raw) == "-0" {
		return "0"
	}
	return string(raw)
}
