//go:build unix

package door_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/confine"
)

func peerOf(p door.Peer) func(net.Conn) (door.Peer, error) {
	return func(net.Conn) (door.Peer, error) { return p, nil }
}

func TestAHandshakeThatIsNotOfTheSessionIsRefusedAndRecorded(t *testing.T) {
	short := door.Limits{Handshake: 200 * time.Millisecond}
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
		"one that is too long": {text: func(*world) string { return strings.Repeat("x", 2*connect.MaxHello) },
			message: "longer than"},
		"one that stays away": {settings: settings{limits: short}, text: func(*world) string { return "" },
			message: "in time"},
		"one without its end": {settings: settings{limits: short},
			text: func(w *world) string { return strings.TrimSpace(hello(w)) }, message: "in time"},
		"no JSON": {text: func(*world) string { return "GET / HTTP/1.1\n" }, message: "cannot be read"},
		"another version": {text: func(w *world) string {
			return fmt.Sprintf(`{"claudeops":2,"ticket":%q}`, w.ticket()) +
				"\n"
		}, message: "cannot be read"},
		"a right that is asked for": {text: func(w *world) string {
			return fmt.Sprintf(`{"claudeops":1,"ticket":%q,"session":"x"}`, w.ticket()) + "\n"
		}, message: "cannot be read"},
		"two in one line": {text: func(w *world) string { return strings.TrimSpace(hello(w)) + hello(w) },
			message: "cannot be read"},
		"another user": {
			settings: settings{credentials: peerOf(door.Peer{Known: true, UID: uid() + 1, PID: 7})}, text: hello,
			message: "is of user",
		},
		"no credentials": {
			settings: settings{credentials: func(net.Conn) (door.Peer, error) { return door.Peer{}, errors.New("none") }},
			text:     hello, message: "does not say who",
		},
		"a process that is none of the session's": {settings: settings{strangers: true}, text: hello,
			message: "none of this session's"},
		"a process that has ended": {
			settings: settings{credentials: peerOf(door.Peer{Known: true, UID: uid(), PID: 7,
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
			if row.Outcome != record.OutcomeRefused || row.Code != fault.Unauthenticated || row.Action != door.ActionConnect ||
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
	_, err := other.dial(connect.Hello{Ticket: stolen})
	if refused := refusal(t, err); refused.Code != string(fault.Unauthenticated) || len(other.audit()) != 1 {
		t.Errorf("another door: %v, rows %+v", err, other.audit())
	}
	if err := one.door.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := one.dial(connect.Hello{Ticket: stolen}); err == nil {
		t.Error("a door that was closed let somebody in")
	}
	if _, err := os.Lstat(one.door.Folder()); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}

func TestTheAgentsSideLowersItsRightsAndNeverRaisesThem(t *testing.T) {
	for name, c := range map[string]struct {
		lower   connect.Lower
		tier    gitprovider.Tier
		dry, ro bool
	}{
		"nothing":       {connect.Lower{}, 2, false, false},
		"a lower tier":  {connect.Lower{Tier: 1}, 1, false, false},
		"a higher tier": {connect.Lower{Tier: 3}, 2, false, false},
		"no tier":       {connect.Lower{Tier: -1}, 2, false, false},
		"a dry run":     {connect.Lower{DryRun: true}, 2, true, false},
		"read-only":     {connect.Lower{ReadOnly: true}, 2, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, settings{})
			if got := w.enter(c.lower).ask(t, "abc"); got != "4" {
				t.Errorf("answered %q", got)
			}
			r := <-w.rights
			if r.Tier != c.tier || r.DryRun != c.dry || r.ReadOnly != c.ro || r.Session != session {
				t.Errorf("rights %+v", r)
			}
		})
	}
	full := door.Rights{Tier: 3, DryRun: true, ReadOnly: true}
	if got := full.Lower(connect.Lower{Tier: 3}); !got.DryRun || !got.ReadOnly {
		t.Errorf("a dry run was taken off: %+v", got)
	}
}

func TestAFurtherConnectionIsRecordedAndTheirNumberIsBounded(t *testing.T) {
	w := open(t, settings{limits: door.Limits{Connections: 2}})
	first := w.enter(connect.Lower{})
	first.ask(t, "a")
	second := w.enter(connect.Lower{})
	second.ask(t, "a")
	for len(w.audit()) == 0 {
		runtime.Gosched() // it is recorded beside the connection
	}
	if rows := w.audit(); len(rows) != 1 || rows[0].Outcome != record.OutcomeDone || rows[0].Action != door.ActionConnect {
		t.Errorf("rows %+v", rows)
	}
	_, err := w.dial(connect.Hello{Ticket: w.ticket()})
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
		conn, err := w.dial(connect.Hello{Ticket: w.ticket()})
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
	s := w.enter(connect.Lower{})
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
	_, err := w.dial(connect.Hello{Ticket: w.ticket()})
	if refused := refusal(t, err); refused.Retry {
		t.Errorf("it may come back: %+v", refused)
	}
}

func TestRefusalsCannotFillTheAudit(t *testing.T) {
	w := open(t, settings{limits: door.Limits{Rows: 3}})
	refuse := func() { _, _ = w.dial(connect.Hello{Ticket: "wrong"}) }
	for range 10 {
		refuse()
	}
	if rows := w.audit(); len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	w.mu.Lock()
	w.now = w.now.Add(time.Hour)
	w.mu.Unlock()
	refuse()
	if rows := w.audit(); len(rows) != 4 || !strings.Contains(rows[3].Message, "7 more were not recorded") {
		t.Errorf("rows %+v", rows)
	}
}

func TestASessionThatSendsMoreThanItMayIsHeldBack(t *testing.T) {
	w := open(t, settings{limits: door.Limits{Messages: 5}})
	s := w.enter(connect.Lower{})
	for range 5 {
		s.ask(t, "a")
	}
	if _, err := io.WriteString(s, "b\n"); err != nil {
		t.Fatal(err)
	}
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
	w := open(t, settings{serve: func(_ context.Context, _ door.Rights, c door.Client) error {
		close(began)
		<-c.Gone
		close(written)
		return nil
	}})
	w.enter(connect.Lower{})
	<-began
	if err := w.door.Close(); err != nil {
		t.Fatal(err)
	}
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
	w := open(t, settings{limits: door.Limits{End: 10 * time.Millisecond},
		serve: func(context.Context, door.Rights, door.Client) error {
			<-forever
			return nil
		}})
	w.enter(connect.Lower{})
	<-w.rights
	if err := w.door.Close(); err == nil || !strings.Contains(err.Error(), "go on") {
		t.Errorf("got %v", err)
	}
}

func TestTheFolderIsOursAndTheAgentsUserReachesIt(t *testing.T) {
	set, group, modes := settings{}, os.Getgid(), []os.FileMode{0o700, 0o600, 0o600}
	if uid() == 0 { // else there is no other user
		set.account = &confine.Account{Name: "agent", UID: 12345, GID: 12345}
		group, modes = 12345, []os.FileMode{0o710, 0o640, 0o660}
	}
	w := open(t, set)
	for i, path := range []string{w.door.Folder(), w.door.TicketFile(), strings.TrimPrefix(w.door.Address(), "unix:")} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != modes[i] || !ok || int(stat.Uid) != uid() ||
			int(stat.Gid) != group && runtime.GOOS == "linux" {
			t.Errorf("%s: mode %s, owner %+v", filepath.Base(path), info.Mode(), info.Sys())
		}
	}
	_, err := w.dial(connect.Hello{Ticket: w.ticket()})
	if uid() == 0 && refusal(t, err).Code != string(fault.Unauthenticated) {
		t.Errorf("another user than the agent's: %v", err)
	}
	if uid() != 0 && err != nil {
		t.Errorf("the agent's user: %v", err)
	}
}

func TestALongPathIsCutShort(t *testing.T) {
	long := filepath.Join("/", strings.Repeat("a/", 60))
	if got := door.Folder(long, session); !strings.HasPrefix(got, "/tmp/") || !door.IsFolder(got, session) {
		t.Errorf("got %s", got)
	}
	if got := door.Folder("/run/x", session); got != "/run/x/claudeops-door-"+session {
		t.Errorf("got %s", got)
	}
	for _, no := range []string{"claudeops-door-" + session, "/tmp/claudeops-door-" + session + "/..", "/tmp/other", "/"} {
		if door.IsFolder(no, session) {
			t.Errorf("%s is taken for the folder of a door", no)
		}
	}
}

func TestASessionThatConnectsAgainAndAgainIsHeldBack(t *testing.T) {
	w := open(t, settings{limits: door.Limits{Messages: 3}})
	for range 3 {
		_ = w.enter(connect.Lower{}).Close()
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", strings.TrimPrefix(w.door.Address(), "unix:"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "{\"claudeops\":1,\"ticket\":%q}\n", w.ticket()); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection beyond the bound was answered: %v", err)
	}
}
