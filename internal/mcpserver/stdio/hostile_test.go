package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// hostile lines must each get exactly the answer of their row, one report, and leave the session alive.
func TestHostileLinesAreAnsweredAndSurvived(t *testing.T) {
	const limit = maxEnvelope + 4096
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name   string
		line   string
		code   int
		id     string
		reason Reason
		tool   string // that the report names
	}{
		{"text that is not JSON", "hello", -32700, "null", ReasonMalformed, ""},
		{"a message cut in the middle", callTool("1", "create_pr", `{"title":"x`),
			-32700, "null", ReasonMalformed, "create_pr"},
		{"two messages on one line", pingLine + pingLine, -32700, "null", ReasonMalformed, ""},
		{"a message with text after it", pingLine + " x", -32700, "null", ReasonMalformed, ""},
		{"a comment", `{"jsonrpc":"2.0",/**/"id":1,"method":"ping"}`, -32700, "null", ReasonMalformed, ""},
		{"a trailing comma", `{"jsonrpc":"2.0","id":1,"method":"ping",}`, -32700, "null", ReasonMalformed, ""},
		{"a byte order mark", "\ufeff" + pingLine, -32700, "null", ReasonMalformed, ""},
		{"a NUL byte", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\x00ng\"}", -32700, "null", ReasonMalformed, ""},
		{"a NUL byte alone", "\x00", -32700, "null", ReasonMalformed, ""},
		{"a lone surrogate", callTool("1", "echo", `{"text":"\ud800"}`), -32600, "1", ReasonMalformed, "echo"},
		{"a lone surrogate as a name", callTool("1", "echo", `{"\udc00":1}`), -32600, "1", ReasonMalformed, "echo"},
		{"a lone surrogate in the id", callTool(`"\ud800"`, "echo", `{}`), -32600, "null", ReasonMalformed, "echo"},
		{"a lone surrogate and no JSON", callTool("1", "echo", `{"text":"\ud800",}`), -32700, "null", ReasonMalformed,
			"echo"},
		{"invalid UTF-8", callTool("1", "echo", "{\"text\":\"\xff\"}"), -32700, "null", ReasonBadUTF8, "echo"},
		{"UTF-8 in overlong form", callTool("1", "echo", "{\"text\":\"\xc0\xaf\"}"),
			-32700, "null", ReasonBadUTF8, "echo"},
		{"a batch", "[" + pingLine + "]", -32600, "null", ReasonBatch, ""},
		{"an empty batch", "[]", -32600, "null", ReasonBatch, ""},
		{"a string", `"ping"`, -32600, "null", ReasonInvalidRequest, ""},
		{"a number", `1`, -32600, "null", ReasonInvalidRequest, ""},
		{"null", `null`, -32600, "null", ReasonInvalidRequest, ""},
		{"an empty object", `{}`, -32600, "null", ReasonInvalidRequest, ""},
		{"JSON-RPC 1.0", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600, "1", ReasonInvalidRequest, ""},
		{"no version", `{"id":1,"method":"ping"}`, -32600, "1", ReasonInvalidRequest, ""},
		{"no method", `{"jsonrpc":"2.0","id":1}`, -32600, "1", ReasonInvalidRequest, ""},
		{"an empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, -32600, "1", ReasonInvalidRequest, ""},
		{"a method that is a number", `{"jsonrpc":"2.0","id":1,"method":5}`, -32600, "1", ReasonInvalidRequest, ""},
		{"a method that is null", `{"jsonrpc":"2.0","id":1,"method":null}`, -32600, "1", ReasonInvalidRequest, ""},
		{"a null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "null", ReasonInvalidRequest, ""},
		{"an id with a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600, "null", ReasonInvalidRequest, ""},
		{"an id with an exponent", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`,
			-32600, "null", ReasonInvalidRequest, ""},
		{"an id beyond 64 bits", `{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}`, -32600, "null",
			ReasonInvalidRequest, ""},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
			-32600, "null", ReasonInvalidRequest, ""},
		{"an id that is true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, -32600, "null", ReasonInvalidRequest, ""},
		{"an id of 1025 bytes", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1025) + `","method":"ping"}`,
			-32600, "null",
			ReasonInvalidRequest, ""},
		{"a call without an id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"create_pr"}}`, -32600, "null",
			ReasonInvalidRequest, "create_pr"},
		{"a method and a result", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`,
			-32600, "1", ReasonInvalidRequest, ""},
		{"a method and an error", `{"jsonrpc":"2.0","id":1,"method":"ping","error":{}}`,
			-32600, "1", ReasonInvalidRequest, ""},
		{"params that are an array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo"]}`, -32600, "1",
			ReasonInvalidRequest, ""},
		{"params that are a string", `{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}`, -32600, "1",
			ReasonInvalidRequest, ""},
		{"two ids", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, -32600, "null", ReasonDuplicateKey, ""},
		{"an id in capitals beside the id", `{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}`, -32600, "null",
			ReasonInvalidRequest, ""},
		{"two versions", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}`, -32600, "1", ReasonDuplicateKey, ""},
		{"two methods", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`,
			-32600, "1", ReasonDuplicateKey, ""},
		{"two methods, one of them escaped", `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/call"}`,
			-32600, "1",
			ReasonDuplicateKey, ""},
		{"two params", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`,
			-32600, "1", ReasonDuplicateKey, ""},
		{"two tool names", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"create_pr"}}`,
			-32600, "1", ReasonDuplicateKey, "create_pr"},
		{"two arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
			`"params":{"name":"echo","arguments":{},"arguments":{}}}`,
			-32600, "1", ReasonDuplicateKey, "echo"},
		{"two _meta", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{},"name":"echo","_meta":{}}}`,
			-32600, "1", ReasonDuplicateKey, "echo"},
		{"a method in capitals beside the method", `{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}`,
			-32600, "1",
			ReasonInvalidRequest, ""},
		{"a tool name in capitals beside the name",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"create_pr"}}`, -32600, "1",
			ReasonInvalidRequest, "echo"},
		{"params with a long s", `{"jsonrpc":"2.0","id":1,"method":"ping","param` + "\u017f" + `":{}}`, -32600, "1",
			ReasonInvalidRequest, ""},
		{"arguments that nest 65 levels", callTool("1", "create_pr", `{"x":`+deep(62)+`}`),
			-32600, "1", ReasonTooDeep, "create_pr"},
		{"nesting in a member nobody reads", `{"jsonrpc":"2.0","x":` + deep(1000) + `,"method":"ping","id":1}`,
			-32600, "1",
			ReasonTooDeep, ""},
		{"a batch that never closes", strings.Repeat("[", 4000), -32700, "null", ReasonMalformed, ""},
		{"a call without params", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, -32602, "1", ReasonInvalidParams, ""},
		{"a call without a name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`,
			-32602, "1", ReasonInvalidParams, ""},
		{"a call with an empty name", callTool("1", "", `{}`), -32602, "1", ReasonInvalidParams, ""},
		{"a call whose name is a number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}`,
			-32602, "1",
			ReasonInvalidParams, ""},
		{"arguments that are an array", callTool("1", "echo", `[]`), -32602, "1", ReasonInvalidParams, "echo"},
		{"arguments that are a string", callTool("1", "echo", `"{}"`), -32602, "1", ReasonInvalidParams, "echo"},
		{"params that mcp-go cannot decode",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":"x"}}`, -32602, "1",
			ReasonInvalidParams, "echo"},
		{"a tool that is not there", callTool("1", "create_pr", `{}`), -32602, "1", ReasonProtocol, "create_pr"},
		{"a modern call without capabilities", `{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
			`"params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
			-32602, "1", ReasonProtocol, "echo"},
		{"a line one byte over the limit", callTool("1", "create_pr", padTo(limit+1, callTool("1", "create_pr", ""))), -32600,
			"1", ReasonTooLarge, "create_pr"},
		{"a line far over the limit", callTool("1", "create_pr", padTo(300_000, callTool("1", "create_pr", ""))),
			-32600, "1",
			ReasonTooLarge, "create_pr"},
		{"a long line with its id at the end", `{"method":"tools/call","params":{"name":"create_pr","arguments":{"x":"` +
			strings.Repeat("x", 300_000) + `"}},"jsonrpc":"2.0","id":"a-1"}`, -32600, `"a-1"`, ReasonTooLarge, "create_pr"},
		{"a call that is large beside its arguments",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_pr","_meta":{"x":"` +
				strings.Repeat("x", maxEnvelope) + `"}}}`, -32600, "1", ReasonTooLarge, "create_pr"},
		{"a ping that is large", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"arguments":"` +
			strings.Repeat("x", maxEnvelope) + `"}}`,
			-32600, "1", ReasonTooLarge, ""},
		{"a long line of nothing", strings.Repeat("x", 300_000), -32600, "null", ReasonTooLarge, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var seen rejections
			got := serveAll(t, newServer(nil), Options{MaxMessage: limit, OnReject: seen.hook}, tt.line+"\n"+pingLine+"\n")
			if len(got) != 2 {
				t.Fatalf("want the refusal and the answer to ping, got %q", lines(got))
			}
			if string(byID(t, got, `"ping"`).Result) != "{}" {
				t.Errorf("the session did not go on: %q", lines(got))
			}
			refusal := byID(t, got, tt.id)
			if refusal.Error == nil || refusal.Error.Code != tt.code {
				t.Fatalf("want error %d, got %s", tt.code, refusal.line)
			}
			for _, dump := range []string{"json:", "jsontext", "unmarshal", "goroutine"} {
				if strings.Contains(refusal.Error.Message, dump) {
					t.Errorf("the text shows internals: %s", refusal.Error.Message)
				}
			}
			all := seen.list()
			if len(all) != 1 || all[0].Reason != tt.reason || all[0].Tool != tt.tool {
				t.Fatalf("want one report %q of tool %q, got %+v", tt.reason, tt.tool, all)
			}
			if all[0].Message != refusal.Error.Message || all[0].Size != int64(len(tt.line)) {
				t.Errorf("the report differs from message or size %d: %+v", len(tt.line), all[0])
			}
		})
	}
}

// padTo is an object that brings a message of the frame's length plus the object to size bytes.
func padTo(size int, frame string) string {
	return `{"x":"` + strings.Repeat("x", size-len(frame)-len(`{"x":""}`)) + `"}`
}

func TestLinesThatAreNoMessagesGetNoAnswer(t *testing.T) {
	for name, line := range map[string]string{
		"an empty line":                          "",
		"a line of spaces":                       " \t ",
		"a carriage return":                      "\r",
		"a response to nothing":                  `{"jsonrpc":"2.0","id":7,"result":{}}`,
		"an error response to nothing":           `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`,
		"an error response without an id":        `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`,
		"a notification nobody handles":          `{"jsonrpc":"2.0","method":"notifications/unknown"}`,
		"a cancellation of an unknown id":        cancelLine("99"),
		"a cancellation of nothing":              `{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		"a cancellation of an id that is none":   cancelLine("{}"),
		"a cancellation of a finished handshake": cancelLine("0"),
	} {
		t.Run(name, func(t *testing.T) {
			var seen rejections
			got := serveAll(t, newServer(nil), Options{OnReject: seen.hook}, initializeLine+"\n"+line+"\n"+pingLine+"\n")
			if len(got) != 2 || string(got[1].ID) != `"ping"` {
				t.Errorf("want the answers to initialize and ping only, got %q", lines(got))
			}
			if all := seen.list(); len(all) != 0 {
				t.Errorf("nothing was refused, yet reported: %+v", all)
			}
		})
	}
}

func TestUnusualButValidMessagesAreServed(t *testing.T) {
	for name, tt := range map[string]struct{ line, id string }{
		"CR LF":                  {pingLine + "\r", `"ping"`},
		"white space around":     {"  " + pingLine + " ", `"ping"`},
		"an escaped member name": {`{"jsonrpc":"2.0","id":1,"m\u0065thod":"ping"}`, "1"},
		"null params":            {`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, "1"},
		"unknown members, twice": {`{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}`, "1"},
		"an id of 19 digits":     {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, "9007199254740993"},
		"a negative id":          {`{"jsonrpc":"2.0","id":-1,"method":"ping"}`, "-1"},
		"an empty string as id":  {`{"jsonrpc":"2.0","id":"","method":"ping"}`, `""`},
		"an id with markup":      {`{"jsonrpc":"2.0","id":"<&>","method":"ping"}`, `"<&>"`},
		"64 levels": {
			callTool("1", "echo", `{"x":`+strings.Repeat("[", 61)+strings.Repeat("]", 61)+`}`), "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := serveAll(t, newServer(nil), Options{}, tt.line+"\n")
			if answer := byID(t, got, tt.id); answer.Error != nil {
				t.Errorf("want a result, got %s", answer.line)
			}
		})
	}
}

func TestAMessageOfExactlyTheLimitIsServed(t *testing.T) {
	const limit = 1 << 20
	for _, ending := range []string{"\n", "\r\n", ""} {
		t.Run(fmt.Sprintf("ending %q", ending), func(t *testing.T) {
			frame := callTool("1", "raw", "")
			line := callTool("1", "raw", padTo(limit, frame))
			if len(line) != limit {
				t.Fatalf("the test built %d bytes", len(line))
			}
			got := serveAll(t, newServer(nil), Options{MaxMessage: limit}, line+ending)
			if answer := byID(t, got, "1"); answer.Error != nil || len(answer.line) < limit-len(frame) {
				t.Errorf("want the message back, got %.200s", answer.line)
			}
		})
	}
}

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
		must.Do(t, Serve(t.Context(), bytes.NewReader(input), &out, srv, opts))
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

func TestFramerCutsLines(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	const limit = 100_000 // more than the read buffer
	tests := map[string]struct {
		input string
		want  []string // a line that is too long is shown as its size
	}{
		"nothing":                          {"", nil},
		"one line":                         {"a\n", []string{"a"}},
		"a last line without a newline":    {"a\nb", []string{"a", "b"}},
		"empty lines":                      {"\n\na\n", []string{"", "", "a"}},
		"CR LF":                            {"a\r\nb\r\n", []string{"a", "b"}},
		"one carriage return only is cut":  {"a\r\r\n", []string{"a\r"}},
		"a carriage return without LF":     {"a\rb\r", []string{"a\rb\r"}},
		"a line at the limit":              {x(limit) + "\na", []string{x(limit), "a"}},
		"a line at the limit with CR LF":   {x(limit) + "\r\na", []string{x(limit), "a"}},
		"a last line at the limit":         {x(limit), []string{x(limit)}},
		"one byte more":                    {x(limit+1) + "\na", []string{"100001 bytes", "a"}},
		"one byte more with CR LF":         {x(limit+1) + "\r\na", []string{"100001 bytes", "a"}},
		"a last line with one byte more":   {x(limit + 1), []string{"100001 bytes"}},
		"a last line with two bytes more":  {x(limit + 2), []string{"100002 bytes"}},
		"a line of many buffers":           {x(1_000_000) + "\r\na", []string{"1000000 bytes", "a"}},
		"a last line of many buffers":      {x(1_000_000), []string{"1000000 bytes"}},
		"a carriage return at the cut":     {x(limit) + "\r", []string{"100001 bytes"}},
		"a long line between short ones":   {"a\n" + x(300_000) + "\nb\n", []string{"a", "300000 bytes", "b"}},
		"two long lines behind each other": {x(300_000) + "\n" + x(300_001) + "\n", []string{"300000 bytes", "300001 bytes"}},
	}
	readers := map[string]func(io.Reader) io.Reader{
		"in one go":         func(r io.Reader) io.Reader { return r },
		"by halves":         iotest.HalfReader,
		"with data and EOF": iotest.DataErrReader,
	}
	for name, tt := range tests {
		for how, reader := range readers {
			t.Run(name+" "+how, func(t *testing.T) {
				if diff := cmp.Diff(tt.want, allFrames(t, reader(strings.NewReader(tt.input)), limit)); diff != "" {
					t.Errorf("%.500s", diff)
				}
			})
		}
	}
}

func allFrames(t *testing.T, in io.Reader, limit int) []string {
	t.Helper()
	framer := newFramer(in, limit)
	var all []string
	for {
		f, err := framer.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !f.tooLong {
			all = append(all, string(f.raw))
			continue
		}
		if len(f.raw) > keptHead || len(f.tail) > keptTail {
			t.Errorf("kept %d and %d bytes of a line that is too long", len(f.raw), len(f.tail))
		}
		all = append(all, fmt.Sprintf("%d bytes", f.size))
	}
}

func TestALineThatIsTooLongKeepsItsEnds(t *testing.T) {
	line := "HEAD" + strings.Repeat("x", 500_000) + "TAIL"
	f, err := newFramer(strings.NewReader(line+"\r\nnext"), 1000).next()
	if err != nil || !f.tooLong {
		t.Fatalf("want a frame that is too long, got %+v, %v", f.tooLong, err)
	}
	if !bytes.HasPrefix(f.raw, []byte("HEAD")) || !bytes.HasSuffix(f.tail, []byte("xTAIL")) {
		t.Errorf("head %.10q, tail %q", f.raw, f.tail)
	}
	if len(f.raw) != keptHead {
		t.Errorf("want %d bytes of head, got %d", keptHead, len(f.raw))
	}
}

// A line of any length costs memory for the limit only: the sum of all allocations is measured, so that it does not
// matter when the collector runs.
func TestAVeryLongLineCostsNoMoreMemoryThanTheLimit(t *testing.T) {
	const size, limit = 64 << 20, 4 << 20
	in := io.MultiReader(
		strings.NewReader(`{"method":"tools/call","params":{"name":"create_pr","arguments":{"x":"`),
		io.LimitReader(endlessX{}, size),
		strings.NewReader(`"}},"jsonrpc":"2.0","id":5}`+"\n"+pingLine+"\n"))
	var out bytes.Buffer
	var seen rejections
	srv := newServer(nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Serve(t.Context(), in, &out, srv, Options{MaxMessage: limit, OnReject: seen.hook})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 3*limit {
		t.Errorf("a line of %d bytes allocated %d bytes in all", size, got)
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 2 || string(decodeMessage(t, got[0]).ID) != "5" || !strings.Contains(got[0], "4194304") {
		t.Errorf("want a refusal under id 5 that names the limit, then the answer to ping, got %q", got)
	}
	if all := seen.list(); len(all) != 1 || all[0].Tool != "create_pr" || all[0].Size < size {
		t.Errorf("want one report with tool and size, got %+v", all)
	}
}

type endlessX struct{}

func (endlessX) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestTrailingID(t *testing.T) {
	tests := map[string]struct{ tail, want string }{
		"an integer":                        {`"}},"jsonrpc":"2.0","id":3}`, "3"},
		"a negative integer":                {`}},"id":-3}`, "-3"},
		"a string":                          {`}},"id":"abc"}`, `"abc"`},
		"a string with escapes":             {`}},"id":"a\"b\\"}`, `"a\"b\\"`},
		"white space everywhere":            {"}} , \"id\" : 3 } \t", "3"},
		"an id that is not the last member": {`,"id":3,"x":1}`, ""},
		"an id of a nested object":          {`,"x":{"y":1,"id":3}}`, ""},
		"a key that ends in id":             {`,"x\"id":3}`, ""},
		"a text inside a string":            {`\",\"id\":3}`, ""},
		"a string that is not closed":       {`,"id":3}"`, ""},
		"a fraction":                        {`,"id":3.5}`, ""},
		"null":                              {`,"id":null}`, ""},
		"two values":                        {`,"id":3 4}`, ""},
		"an object":                         {`,"id":{}}`, ""},
		"no id":                             {`,"x":3}`, ""},
		"a string that holds the key":       {`,"id":"x\"id\":"}`, `"x\"id\":"`},
		"a cut key":                         {`id":3}`, ""},
		"nothing":                           {``, ""},
		"a brace":                           {`}`, ""},
		"an array":                          {`,"id":3]`, ""},
		"a string that is too long":         {`,"id":"` + strings.Repeat("x", maxIDLength+1) + `"}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, trailingID([]byte(tt.tail)).raw, tt.want)
		})
	}
}

func TestShortenKeepsCharactersWhole(t *testing.T) {
	must.Equal(t, shorten(strings.Repeat("é", 100)), strings.Repeat("é", 64))
	must.Equal(t, shorten("x"+strings.Repeat("é", 100)), "x"+strings.Repeat("é", 63))
}
