package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

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
			if got := trailingID([]byte(tt.tail)).raw; got != tt.want {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

func TestShortenKeepsCharactersWhole(t *testing.T) {
	if got := shorten(strings.Repeat("é", 100)); got != strings.Repeat("é", 64) {
		t.Errorf("got %q", got)
	}
	if got := shorten("x" + strings.Repeat("é", 100)); got != "x"+strings.Repeat("é", 63) {
		t.Errorf("got %q", got)
	}
}
