//go:build unix

package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/mcpserver/stdio"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func peerOf(p gateway.Peer) func(net.Conn) (gateway.Peer, error) {
	return func(net.Conn) (gateway.Peer, error) { return p, nil }
}

func TestAHandshakeThatIsNotOfTheSessionIsRefusedAndRecorded(t *testing.T) {
	short := gateway.Limits{Handshake: 200 * time.Millisecond}
	hello := func(w *world) string { return fmt.Sprintf(`{"claudeops":1,"ticket":%q}`, w.ticket()) + "\n" }
	for name, c := range map[string]struct {
		settings settings
		text     func(w *world) string
		message  string
	}{
		"a wrong ticket": {text: func(*world) string { return `{"claudeops":1,"ticket":"wrong"}` + "\n" },
			message: "ticket"},
		"no ticket": {text: func(*world) string { return `{"claudeops":1}` + "\n" }, message: "ticket"},
		"a ticket cut short": {text: func(w *world) string {
			return fmt.Sprintf(`{"claudeops":1,"ticket":%q}`,
				w.ticket()[:42]) + "\n"
		}, message: "ticket"},
		"one that is too long": {text: func(*world) string { return strings.Repeat("x", 2*stdioproxy.MaxHello) },
			message: "longer than"},
		"one that stays away": {settings: settings{limits: short}, text: func(*world) string { return "" },
			message: "in time"},
		"one without its end": {settings: settings{limits: short},
			text: func(w *world) string { return strings.TrimSpace(hello(w)) }, message: "in time"},
		"no JSON": {text: func(*world) string { return "GET / HTTP/1.1\n" }, message: "cannot be read"},
		"a right that is asked for": {text: func(w *world) string {
			return fmt.Sprintf(`{"claudeops":1,"ticket":%q,"session":"x"}`, w.ticket()) + "\n"
		}, message: "cannot be read"},
		"another user": {
			settings: settings{credentials: peerOf(gateway.Peer{Known: true, UID: uid() + 1, PID: 7})}, text: hello,
			message: "is of user",
		},
		"no credentials": {
			settings: settings{credentials: func(net.Conn) (gateway.Peer, error) { return gateway.Peer{}, errors.New("none") }},
			text:     hello, message: "does not say who",
		},
		"a process that is none of the session's": {settings: settings{strangers: true}, text: hello,
			message: "none of this session's"},
		"a process that has ended": {
			settings: settings{credentials: peerOf(gateway.Peer{Known: true, UID: uid(), PID: 7,
				Ended: func() bool { return true }})},
			text: hello, message: "none of this session's",
		},
		"before the session has processes": {settings: settings{limits: short, unknown: true}, text: hello,
			message: "none of this session's"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, c.settings)
			a := decode(t, w.raw(c.text(w)))
			if a.OK || a.Retry || a.Code != string(fault.Unauthenticated) || !strings.Contains(a.Message, c.message) {
				t.Errorf("the answer is %+v", a)
			}
			rows := w.audit()
			if len(rows) != 1 || len(w.rights) > 0 {
				t.Fatalf("%d connections were served, rows %+v", len(w.rights), rows)
			}
			row := rows[0]
			if row.Outcome != record.OutcomeRefused || row.Code != fault.Unauthenticated ||
				row.Action != gateway.ActionConnect ||
				row.Session != session ||
				!strings.Contains(row.Message, c.message) {
				t.Errorf("row %+v", row)
			}
			if strings.Contains(row.Message, w.ticket()) {
				t.Error("the row holds the ticket")
			}
		})
	}
}

func TestATicketIsOfNoUseAtAnotherDoorOrAfterTheEnd(t *testing.T) {
	one, other := open(t, settings{}), open(t, settings{})
	stolen := one.ticket()
	_, err := other.dial(stdioproxy.Hello{Ticket: stolen})
	if refused := refusal(t, err); refused.Code != string(fault.Unauthenticated) || len(other.audit()) != 1 {
		t.Errorf("another door: %v, rows %+v", err, other.audit())
	}
	must.Do(t, one.door.Close())
	if _, err := one.dial(stdioproxy.Hello{Ticket: stolen}); err == nil {
		t.Error("a door that was closed let somebody in")
	}
	if _, err := os.Lstat(one.door.Folder()); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}

func TestTheAgentsSideLowersItsRightsAndNeverRaisesThem(t *testing.T) {
	for name, c := range map[string]struct {
		lower   stdioproxy.Lower
		tier    gitprovider.Tier
		dry, ro bool
	}{
		"nothing":       {stdioproxy.Lower{}, 2, false, false},
		"a lower tier":  {stdioproxy.Lower{Tier: 1}, 1, false, false},
		"a higher tier": {stdioproxy.Lower{Tier: 3}, 2, false, false},
		"no tier":       {stdioproxy.Lower{Tier: -1}, 2, false, false},
		"a dry run":     {stdioproxy.Lower{DryRun: true}, 2, true, false},
		"read-only":     {stdioproxy.Lower{ReadOnly: true}, 2, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, settings{})
			must.Equal(t, w.enter(c.lower).ask(t, "abc"), "4")
			r := <-w.rights
			if r.Tier != c.tier || r.DryRun != c.dry || r.ReadOnly != c.ro || r.Session != session {
				t.Errorf("rights %+v", r)
			}
		})
	}
	full := gateway.Rights{Tier: 3, DryRun: true, ReadOnly: true}
	if got := full.Lower(stdioproxy.Lower{Tier: 3}); !got.DryRun || !got.ReadOnly {
		t.Errorf("a dry run was taken off: %+v", got)
	}
}

func TestAFurtherConnectionIsRecordedAndTheirNumberIsBounded(t *testing.T) {
	w := open(t, settings{limits: gateway.Limits{Connections: 2}})
	first := w.enter(stdioproxy.Lower{})
	first.ask(t, "a")
	second := w.enter(stdioproxy.Lower{})
	second.ask(t, "a")
	for len(w.audit()) == 0 {
		runtime.Gosched() // it is recorded beside the connection
	}
	if rows := w.audit(); len(rows) != 1 || rows[0].Outcome != record.OutcomeDone ||
		rows[0].Action != gateway.ActionConnect {
		t.Errorf("rows %+v", rows)
	}
	_, err := w.dial(stdioproxy.Hello{Ticket: w.ticket()})
	if refused := refusal(t, err); !refused.Retry || refused.Code != string(fault.LimitReached) {
		t.Errorf("a third one: %+v", refused)
	}
	open := w.host.Connections()
	if len(open) != 2 || open[0].Session != session || open[0].Tier != 2 || open[0].Way != "unix" ||
		!strings.Contains(open[0].Peer, "uid") {
		t.Errorf("open are %+v", open)
	}
	_ = first.CloseWrite()
	if _, err := first.lines.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("after its end: %v", err)
	}
	for { // its place is free
		conn, err := w.dial(stdioproxy.Hello{Ticket: w.ticket()})
		if err == nil {
			_ = conn.Close()
			break
		}
		if !refusal(t, err).Retry {
			t.Fatal(err)
		}
	}
}

func TestWhatIsCutOffDoesNotComeBack(t *testing.T) {
	w := open(t, settings{})
	s := w.enter(stdioproxy.Lower{})
	s.ask(t, "a")
	id := w.host.Connections()[0].ID
	if _, found := w.host.Cut("another"); found {
		t.Error("a connection was cut off that there is not")
	}
	if c, found := w.host.Cut(id); !found || c.Session != session {
		t.Fatalf("cut off %+v, %t", c, found)
	}
	if _, err := s.lines.ReadString('\n'); err == nil {
		t.Error("it is still served")
	}
	_, err := w.dial(stdioproxy.Hello{Ticket: w.ticket()})
	if refused := refusal(t, err); refused.Retry {
		t.Errorf("it may come back: %+v", refused)
	}
}

func TestRefusalsCannotFillTheAudit(t *testing.T) {
	w := open(t, settings{limits: gateway.Limits{Rows: 3}})
	refuse := func() { _, _ = w.dial(stdioproxy.Hello{Ticket: "wrong"}) }
	for range 10 {
		refuse()
	}
	if rows := w.audit(); len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	w.pass(time.Hour)
	refuse()
	if rows := w.audit(); len(rows) != 4 || !strings.Contains(rows[3].Message, "7 more were not recorded") {
		t.Errorf("rows %+v", rows)
	}
}

func TestASessionThatSendsMoreThanItMayIsHeldBack(t *testing.T) {
	w := open(t, settings{limits: gateway.Limits{Messages: 5}})
	s := w.enter(stdioproxy.Lower{})
	for range 5 {
		s.ask(t, "a")
	}
	must.Get(io.WriteString(s, "b\n"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.lines.ReadString('\n')
	}()
	select {
	case <-done:
		t.Error("a message beyond the bound was answered")
	case <-time.After(100 * time.Millisecond):
	}
	if err := w.door.Close(); err != nil { // and does not wait for it
		t.Error(err)
	}
	<-done
}

func TestTheEndOfADoorAwaitsCallsThatGoOn(t *testing.T) {
	began, written := make(chan struct{}), make(chan struct{})
	w := open(t, settings{serve: func(_ context.Context, _ gateway.Rights, c gateway.Client) error {
		close(began)
		<-c.Gone
		close(written)
		return nil
	}})
	w.enter(stdioproxy.Lower{})
	<-began
	must.Do(t, w.door.Close())
	select {
	case <-written:
	default:
		t.Error("Close did not wait")
	}
	if open := w.host.Connections(); len(open) > 0 {
		t.Errorf("open are %+v", open)
	}
}

func TestTheEndOfADoorIsBounded(t *testing.T) {
	forever := make(chan struct{})
	defer close(forever)
	w := open(t, settings{limits: gateway.Limits{End: 10 * time.Millisecond},
		serve: func(context.Context, gateway.Rights, gateway.Client) error {
			<-forever
			return nil
		}})
	w.enter(stdioproxy.Lower{})
	<-w.rights
	if err := w.door.Close(); err == nil || !strings.Contains(err.Error(), "go on") {
		t.Errorf("got %v", err)
	}
}

func TestTheFolderIsOursAndTheAgentsUserReachesIt(t *testing.T) {
	set, group, modes := settings{}, os.Getgid(), []os.FileMode{0o700, 0o600, 0o600}
	if uid() == 0 { // else there is no other user
		set.account = &sandbox.Account{Name: "agent", UID: 12345, GID: 12345}
		group, modes = 12345, []os.FileMode{0o710, 0o640, 0o660}
	}
	w := open(t, set)
	for i, path := range []string{w.door.Folder(), w.door.TicketFile(), strings.TrimPrefix(w.door.Address(), "unix:")} {
		info := must.Get(os.Lstat(path))(t)
		if stat, ok := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != modes[i] || !ok || int(stat.Uid) != uid() ||
			int(stat.Gid) != group && runtime.GOOS == "linux" {
			t.Errorf("%s: mode %s, owner %+v", filepath.Base(path), info.Mode(), info.Sys())
		}
	}
	_, err := w.dial(stdioproxy.Hello{Ticket: w.ticket()})
	if uid() == 0 && refusal(t, err).Code != string(fault.Unauthenticated) {
		t.Errorf("another user than the agent's: %v", err)
	}
	if uid() != 0 && err != nil {
		t.Errorf("the agent's user: %v", err)
	}
}

func TestALongPathIsCutShort(t *testing.T) {
	long := filepath.Join("/", strings.Repeat("a/", 60))
	if got := gateway.Folder(long, session); !strings.HasPrefix(got, "/tmp/") || !gateway.IsFolder(got, session) {
		t.Errorf("got %s", got)
	}
	must.Equal(t, gateway.Folder("/run/x", session), "/run/x/claudeops-door-"+session)
	for _, no := range []string{"claudeops-door-" + session, "/tmp/claudeops-door-" + session + "/..", "/tmp/other", "/"} {
		if gateway.IsFolder(no, session) {
			t.Errorf("%s is taken for the folder of a door", no)
		}
	}
}

func TestASessionThatConnectsAgainAndAgainIsHeldBack(t *testing.T) {
	w := open(t, settings{limits: gateway.Limits{Messages: 3}})
	for range 3 {
		_ = w.enter(stdioproxy.Lower{}).Close()
	}
	conn := w.socket()
	must.Get(fmt.Fprintf(conn, "{\"claudeops\":1,\"ticket\":%q}\n", w.ticket()))(t)
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection beyond the bound was answered: %v", err)
	}
}

// tools is an MCP server behind a door: size tells how long its argument is, with a notification of progress before;
// wait waits for the end of its context, and says why it ended.
type tools struct {
	started chan struct{}
	ended   chan error
}

func (s tools) serve(ctx context.Context, _ gateway.Rights, c gateway.Client) error {
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
		err := stdioproxy.Arguments{Address: w.door.Address()}.Run(w.t.Context(), inR, outW, nil)
		_ = outW.Close()
		c.ended <- err
	}()
	w.t.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		must.Get(io.WriteString(inW, line+"\n"))(w.t)
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
	line := must.Get(c.lines.ReadString('\n'))(t)
	must.Contain(t, line, want...)
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
	must.Get(io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`+
		"\n"))(t)
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

// records keeps what a Host records.
type records struct {
	mu     sync.Mutex
	open   map[string]record.Connection
	cut    map[string]bool
	closed []string
	broken int // how many more calls fail
	opened int
}

func (r *records) OpenConnection(_ context.Context, c record.Connection) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken--; r.broken >= 0 {
		return errors.New("the database is away")
	}
	r.opened++
	r.open[c.ID] = c
	return nil
}

func (r *records) HeedConnections(_ context.Context, calls map[string]int) (cut map[string]bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken--; r.broken >= 0 {
		return nil, errors.New("the database is away")
	}
	cut = map[string]bool{}
	for id, n := range calls {
		if c, known := r.open[id]; known {
			c.Calls = n
			r.open[id] = c
			cut[id] = r.cut[id]
		}
	}
	return cut, nil
}

func (r *records) IsCut(_ context.Context, id, session string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken--; r.broken >= 0 {
		return false, errors.New("the database is away")
	}
	for other, c := range r.open {
		if r.cut[other] && (other == id || session != "" && c.Session == session) {
			return true, nil
		}
	}
	return false, nil
}

func (r *records) CloseConnection(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, id)
	r.closed = append(r.closed, id)
	return nil
}

// cutOne cuts one connection off, and with it its session.
func (r *records) cutOne() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.open {
		r.cut[id] = true
		break
	}
}

// await waits until something is recorded.
func (r *records) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r.mu.Lock()
		ok := is()
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not seen: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *records) one(is func(record.Connection) bool) func() bool {
	return func() bool {
		for _, c := range r.open {
			if is(c) {
				return true
			}
		}
		return false
	}
}

func TestAConnectionIsRecordedWithItsCallsUntilItIsOver(t *testing.T) {
	r := &records{open: map[string]record.Connection{}, broken: 3}
	calls := make(chan func(), 1)
	w := open(t, settings{records: r, limits: gateway.Limits{Look: time.Millisecond},
		serve: func(ctx context.Context, rights gateway.Rights, c gateway.Client) error {
			calls <- c.Calling()
			return echo(ctx, rights, c)
		}})
	s := w.enter(stdioproxy.Lower{Tier: 1})
	ended := <-calls
	r.await(t, "the connection with its call",
		r.one(func(c record.Connection) bool { return c.Session == session && c.Tier == 1 && c.Calls == 1 }))
	ended()
	ended() // once counts
	r.await(t, "the end of the call", r.one(func(c record.Connection) bool { return c.Calls == 0 }))
	r.mu.Lock()
	clear(r.open) // it was taken for one of a process that has ended
	r.mu.Unlock()
	r.await(t, "it is recorded again", r.one(func(c record.Connection) bool { return c.Session == session }))
	must.Do(t, s.Close())
	r.await(t, "the end", func() bool { return len(r.open) == 0 && len(r.closed) == 1 })
	if r.opened != 2 {
		t.Errorf("recorded %d times", r.opened)
	}
}

func TestWhatIsCutOffInTheRecordsEndsWithTheWholeSession(t *testing.T) {
	r := &records{open: map[string]record.Connection{}, cut: map[string]bool{}}
	w := open(t, settings{records: r, limits: gateway.Limits{Look: time.Millisecond}})
	first, second := w.enter(stdioproxy.Lower{}), w.enter(stdioproxy.Lower{})
	first.ask(t, "one")
	second.ask(t, "two")
	r.await(t, "both", func() bool { return len(r.open) == 2 })
	r.cutOne()
	for _, s := range []speaker{first, second} {
		if line, err := s.lines.ReadString('\n'); err == nil {
			t.Errorf("it goes on: %q", line)
		}
	}
	_, err := w.dial(stdioproxy.Hello{Ticket: w.ticket()})
	refusal(t, err)
	r.await(t, "the end of both", func() bool {
		return len(r.open) == 0 && len(slices.Compact(slices.Sorted(slices.Values(r.closed)))) == 2
	})
}
