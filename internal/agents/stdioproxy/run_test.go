package stdioproxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// client is one that has started a connector, with doors that a test plays by hand.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	outR  *io.PipeReader
	doors chan net.Conn         // the door's ends of connections, in their order
	away  atomic.Pointer[error] // what attempts to connect meet; nil: they succeed
	ended chan error
	stop  context.CancelFunc
}

func start(t *testing.T, o stdioproxy.Options) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	c := &client{
		t: t, in: inW, out: bufio.NewReaderSize(outR, 5<<20), outR: outR, doors: make(chan net.Conn, 10),
		ended: make(chan error, 1), stop: stop,
	}
	o.Address = "test:x"
	o.Dial = func(context.Context, string, stdioproxy.Hello) (stdioproxy.Conn, error) {
		if err := c.away.Load(); err != nil {
			return nil, *err
		}
		ours, theirs := pair(t)
		c.doors <- theirs
		return ours, nil
	}
	go func() {
		err := stdioproxy.Run(ctx, inR, outW, o)
		_ = outW.Close()
		c.ended <- err
	}()
	t.Cleanup(func() { stop(); _ = inW.Close(); _ = outR.Close() })
	return c
}

// pair is a connection of two sockets, which can be closed by halves.
func pair(t *testing.T) (*net.TCPConn, net.Conn) {
	t.Helper()
	l := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer func() { _ = l.Close() }()
	ours := must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()))(t)
	theirs := must.Get(l.Accept())(t)
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	return ours.(*net.TCPConn), theirs //nolint:forcetypeassert,errcheck // it is one
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Error(err)
	}
}

func (c *client) hears() string {
	c.t.Helper()
	return strings.TrimSuffix(must.Get(c.out.ReadString('\n'))(c.t), "\n")
}

// far is the door's end of a connection.
type far struct {
	net.Conn
	lines *bufio.Reader
	t     *testing.T
}

func (c *client) door() far {
	conn := <-c.doors
	return far{conn, bufio.NewReaderSize(conn, 5<<20), c.t}
}

func (f far) gets(want string) {
	f.t.Helper()
	line, err := f.lines.ReadString('\n')
	if err != nil || strings.TrimSuffix(line, "\n") != want {
		f.t.Fatalf("the door got %.200q, %v; want %.200q", line, err, want)
	}
}

func (f far) says(line string) {
	f.t.Helper()
	if _, err := io.WriteString(f, line+"\n"); err != nil {
		f.t.Error(err)
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"c"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	createPR    = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"create_pr","arguments":{}}}`
	listTools   = `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`
)

// begin does what each client does first.
func begin(t *testing.T, o stdioproxy.Options) (*client, far) {
	t.Helper()
	c := start(t, o)
	c.say(initialize)
	d := c.door()
	d.gets(initialize)
	d.says(`{"jsonrpc":"2.0","id":0,"result":{}}`)
	c.hears()
	c.say(initialized)
	d.gets(initialized)
	return c, d
}

// lost reads the answer to a call whose fate is not known.
func lost(t *testing.T, line string) (id string, code string, retryable bool) {
	t.Helper()
	var m struct {
		ID     json.RawMessage `json:"id"`
		Result struct {
			IsError bool `json:"isError"`
			Content []struct{ Type, Text string }
			Data    struct {
				Error struct {
					Code, Message string
					Retryable     bool
					RequestID     string `json:"request_id"`
				} `json:"error"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || !m.Result.IsError || len(m.Result.Content) != 1 {
		t.Fatalf("%s: %v", line, err)
	}
	e := m.Result.Data.Error
	if m.Result.Content[0].Text != "["+e.Code+"] "+e.Message || e.RequestID == "" {
		t.Errorf("text and structure differ: %s", line)
	}
	return string(m.ID), e.Code, e.Retryable
}

func TestWhatIsUnderWayWhenTheDoorGoesIsAnsweredOrSentAgain(t *testing.T) {
	c, d := begin(t, stdioproxy.Options{})
	other := strings.Replace(strings.Replace(createPR, "create_pr", "script_run", 1), ":7", ":8", 1)
	answered := strings.Replace(createPR, ":7", ":6", 1)
	cancelled := strings.Replace(createPR, ":7", ":5", 1)
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
	for _, line := range []string{answered, createPR, listTools, other, cancelled, cancel} {
		c.say(line)
		d.gets(line)
	}
	d.says(`{"jsonrpc":"2.0","id":6,"result":{"isError":false}}`)
	c.hears()
	if _, err := io.WriteString(d, `{"jsonrpc":"2.0","id":7,"resu`); err != nil { // killed while it wrote
		t.Fatal(err)
	}
	_ = d.Close()
	if id, code, retryable := lost(t, c.hears()); id != "7" || code != "upstream_error" || !retryable {
		t.Errorf("create_pr: %s %s %t", id, code, retryable)
	}
	if id, code, retryable := lost(t, c.hears()); id != "8" || code != "upstream_error" || retryable {
		t.Errorf("another tool: %s %s %t", id, code, retryable)
	}
	d = c.door()
	first, err := d.lines.ReadString('\n')
	if err != nil || !strings.Contains(first, `"initialize"`) || !strings.Contains(first, `{"name":"c"}`) {
		t.Fatalf("first came %q, %v", first, err)
	}
	var replay struct{ ID string }
	if err := json.Unmarshal([]byte(first), &replay); err != nil || replay.ID == "" {
		t.Fatalf("%q: %v", first, err)
	}
	d.gets(initialized)
	d.gets(listTools)
	d.says(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{}}`, replay.ID)) // its answer is discarded
	d.says(`{"jsonrpc":"2.0","id":"a","result":{"tools":[]}}`)
	must.Contain(t, c.hears(), `"tools"`)
	c.say(createPR) // goes on as before
	d.gets(createPR)
}

func TestADoorThatIsAwayIsTriedAgainAndCallsAreRefusedAfterAWhile(t *testing.T) {
	c, d := begin(t, stdioproxy.Options{Hold: time.Nanosecond, GiveUp: time.Hour})
	away := errors.New("nobody listens")
	c.away.Store(&away)
	_ = d.Close()
	for code := ""; code != "timeout"; { // a call may come before it is known that the door is away
		c.say(createPR)
		var retryable bool
		if _, code, retryable = lost(t, c.hears()); code != "timeout" && code != "upstream_error" || !retryable {
			t.Fatalf("got %s, retryable %t", code, retryable)
		}
	}
	c.away.Store(nil)
	c.door() // comes at last
}

func TestADoorThatRefusesOrStaysAwayEndsTheConnector(t *testing.T) {
	for name, fault := range map[string]error{
		"refused": &stdioproxy.RefusedError{Code: "unauthenticated", Message: "no"}, "away": errors.New("nobody listens"),
	} {
		c, d := begin(t, stdioproxy.Options{GiveUp: time.Millisecond})
		c.away.Store(&fault)
		c.say(createPR)
		d.gets(createPR)
		c.say(listTools)
		d.gets(listTools)
		_ = d.Close()
		lost(t, c.hears())
		if got := c.hears(); !strings.Contains(got, `"error"`) || !strings.Contains(got, `"a"`) {
			t.Errorf("%s: heard %s", name, got)
		}
		if err := <-c.ended; !errors.Is(err, fault) {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

func TestTheEndOfTheClientIsPassedOnAndAnswersStillCome(t *testing.T) {
	c, d := begin(t, stdioproxy.Options{})
	c.say(createPR)
	must.Do(t, c.in.Close())
	d.gets(createPR)
	endsAfterItsAnswer(t, c, d)
}

// endsAfterItsAnswer holds that a client's end is passed on, and that the answer to createPR comes all the same.
func endsAfterItsAnswer(t *testing.T, c *client, d far) {
	t.Helper()
	if _, err := d.lines.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
	d.says(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	_ = d.Close()
	c.hears()
	must.Do(t, <-c.ended)
}

func TestASignalEndsTheConnectorAfterTheAnswers(t *testing.T) {
	c, d := begin(t, stdioproxy.Options{End: time.Minute})
	c.say(createPR)
	d.gets(createPR)
	c.stop()
	endsAfterItsAnswer(t, c, d)
	c, _ = begin(t, stdioproxy.Options{End: time.Hour}) // nothing under way, and a door that does not close
	c.stop()
	must.Do(t, <-c.ended)
}

func TestMessagesOfFullSizeAndBeyondPassThrough(t *testing.T) {
	c, d := begin(t, stdioproxy.Options{})
	for _, size := range []int{stdioproxy.MaxMessage, 3 * stdioproxy.MaxMessage} {
		line := strings.Replace(createPR, "{}", `{"body":"`+strings.Repeat("x", size-len(createPR)-9)+`"}`, 1)
		go c.say(line)
		d.gets(line)
		go d.says(line)
		if got := c.hears(); got != line {
			t.Fatalf("%d bytes came back as %d", len(line), len(got))
		}
		d.says(`{"jsonrpc":"2.0","id":7,"result":{}}`)
		c.hears()
	}
}

// A message that broke off with its door must not go on in the middle at the next one.
func TestTheRestOfALongMessageIsNotSentToAnotherDoor(t *testing.T) {
	c, d := begin(t, stdioproxy.Options{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.say(strings.Repeat("x", 4*stdioproxy.MaxMessage))
		c.say(listTools)
	}()
	must.Get(io.CopyN(io.Discard, d.lines, stdioproxy.MaxMessage/2))(t)
	_ = d.Close()
	d = c.door()
	if _, err := d.lines.ReadString('\n'); err != nil { // initialize
		t.Fatal(err)
	}
	d.gets(initialized)
	d.gets(listTools)
	<-written
}

func TestAClientThatDoesNotReadHoldsTheDoorBackAndNotTheOtherDirection(t *testing.T) {
	c, d := begin(t, stdioproxy.Options{})
	const note = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`
	full := make(chan int)
	go func() {
		n := 0
		for ; n < 1_000_000; n++ {
			_ = d.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := io.WriteString(d, note+"\n"); err != nil {
				break
			}
		}
		full <- n
	}()
	c.say(createPR) // is passed on meanwhile
	d.gets(createPR)
	if n := <-full; n == 1_000_000 {
		t.Error("a client that does not read holds nobody back")
	}
	must.Equal(t, c.hears(), note)
}

func TestArgumentsThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	for want, cases := range map[int][][]string{
		0: {{"--help"}},
		2: {
			{}, {"--connect", ""}, {"--connect", "unix:" + dir + "/s", "more"},
			{"--connect", "ftp:x", "--ticket-file", "/dev/null"}, {"--connect", "unix:" + dir + "/s"},
			{"--connect", "unix:" + dir + "/s", "--tier", "4"}, {"--connect", "unix:" + dir + "/s", "--ticket-file", dir},
			{"--nonsense"},
			{"--connect", "x:y", "--ticket-file", ""},
		},
	} {
		for _, args := range cases {
			var out, errOut bytes.Buffer
			if got := stdioproxy.Command(t.Context(), args, strings.NewReader(""), &out, &errOut); got != want ||
				errOut.Len() == 0 || out.Len() > 0 {
				t.Errorf("%q: exit code %d, said %q and %q", args, got, out.String(), errOut.String())
			}
		}
	}
}

func FuzzAnswersToWhatIsLost(f *testing.F) {
	for _, line := range []string{initialize, createPR, listTools, `[]`, `{"id":null,"method":"x"}`,
		`{"id":"\u0061","method":"tools/call","params":[]}`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n") {
			return
		}
		ours, theirs := net.Pipe()
		out := &bytes.Buffer{}
		doors := 0
		o := stdioproxy.Options{Address: "test:x", GiveUp: time.Nanosecond}
		o.Dial = func(context.Context, string, stdioproxy.Hello) (stdioproxy.Conn, error) {
			if doors++; doors > 1 {
				return nil, &stdioproxy.RefusedError{}
			}
			return halfCloser{ours}, nil
		}
		go func() {
			_, _ = bufio.NewReader(theirs).ReadString('\n')
			_ = theirs.Close()
		}()
		in, feed := io.Pipe()
		go func() { _, _ = io.WriteString(feed, line+"\n") }()
		_ = stdioproxy.Run(t.Context(), in, out, o)
		_ = in.Close()
		for answer := range strings.Lines(out.String()) {
			if !json.Valid([]byte(answer)) {
				t.Errorf("%q was answered with %q", line, answer)
			}
		}
	})
}

type halfCloser struct{ net.Conn }

func (halfCloser) CloseWrite() error { return nil }
