//go:build unix

package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const session = "01J0000000000000000000000A"

// world is a Host with one door, and what it saw.
type world struct {
	t      *testing.T
	host   *gateway.Host
	door   *gateway.Door
	rights chan gateway.Rights // of those that were served

	mu   sync.Mutex
	rows []record.Attempt
	now  time.Time
	ids  int
}

// settings are a test's deviations from the usual.
type settings struct {
	limits      gateway.Limits
	credentials func(net.Conn) (gateway.Peer, error)
	serve       func(ctx context.Context, r gateway.Rights, c gateway.Client) error
	account     *sandbox.Account
	records     gateway.Records
	strangers   bool // no process belongs to the session
	unknown     bool // it is not known which do
	still       func(context.Context) error
}

func open(t *testing.T, s settings) *world {
	t.Helper()
	w := &world{t: t, rights: make(chan gateway.Rights, 100), now: time.Unix(1_800_000_000, 0)}
	serve := s.serve
	if serve == nil {
		serve = echo
	}
	w.host = gateway.NewHost(gateway.Options{
		Serve: func(ctx context.Context, r gateway.Rights, c gateway.Client) error {
			w.rights <- r
			return serve(ctx, r, c)
		},
		Audit: w, Records: s.records, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: w.time, NewID: w.id,
		Limits: s.limits, Credentials: s.credentials,
	})
	dir, err := os.MkdirTemp("", "door") // that of t is too long for a socket
	if err == nil {
		err = os.Chmod(dir, 0o755) // as /tmp: the door's own folder keeps others out
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.door = must.Get(w.host.Open(gateway.Spec{Dir: dir, Account: s.account, Still: s.still,
		Rights: gateway.Rights{Session: session, Tier: gitprovider.TierInvestigate}}))(t)
	t.Cleanup(func() {
		if err := w.door.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	if !s.unknown {
		w.door.Admit(func(int) bool { return !s.strangers })
	}
	return w
}

// Record implements door.Audit.
func (w *world) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows = append(w.rows, a)
	return nil
}

func (w *world) audit() []record.Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]record.Attempt{}, w.rows...)
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) id() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("id-%03d", w.ids)
}

func (w *world) ticket() string {
	w.t.Helper()
	return must.Get(stdioproxy.ReadTicket(w.door.TicketFile()))(w.t)
}

func (w *world) dial(h stdioproxy.Hello) (stdioproxy.Conn, error) {
	return stdioproxy.Dial(w.t.Context(), w.door.Address(), h)
}

// speaker is a connection that a test uses line by line.
type speaker struct {
	stdioproxy.Conn
	lines *bufio.Reader
}

func (w *world) enter(l stdioproxy.Lower) speaker {
	w.t.Helper()
	conn := must.Get(w.dial(stdioproxy.Hello{Ticket: w.ticket(), Lower: l}))(w.t)
	w.t.Cleanup(func() { _ = conn.Close() })
	return speaker{conn, bufio.NewReader(conn)}
}

func (s speaker) ask(t *testing.T, line string) string {
	t.Helper()
	must.Get(io.WriteString(s, line+"\n"))(t)
	return strings.TrimSpace(must.Get(s.lines.ReadString('\n'))(t))
}

// echo answers each line with its length.
func echo(_ context.Context, _ gateway.Rights, c gateway.Client) error {
	in := bufio.NewReader(c.In)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil //nolint:nilerr // the end
		}
		if _, err := fmt.Fprintf(c.Out, "%d\n", len(line)); err != nil {
			return nil //nolint:nilerr // the reader is gone
		}
	}
}

func refusal(t *testing.T, err error) *stdioproxy.RefusedError {
	t.Helper()
	var refused *stdioproxy.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return refused
}

// socket is a connection on which nothing was sent yet.
func (w *world) socket() net.Conn {
	w.t.Helper()
	path := strings.TrimPrefix(w.door.Address(), "unix:")
	conn := must.Get(new(net.Dialer).DialContext(w.t.Context(), "unix", path))(w.t)
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// raw sends text on a socket of its own, and returns what comes back.
func (w *world) raw(text string) string {
	w.t.Helper()
	conn := w.socket()
	_, _ = io.WriteString(conn, text) // the door may close before it has read all
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func decode(t *testing.T, line string) stdioproxy.Answer {
	t.Helper()
	var a stdioproxy.Answer
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return a
}

func uid() int { return os.Getuid() }

// TestMain lets this binary connect as another user does: with the address and the ticket's file as arguments.
func TestMain(m *testing.M) {
	const arguments = 3
	if len(os.Args) != arguments || os.Args[0] != asOther {
		os.Exit(m.Run())
	}
	ticket, err := stdioproxy.ReadTicket(os.Args[2])
	if err == nil {
		_, err = stdioproxy.Dial(context.Background(), os.Args[1], stdioproxy.Hello{Ticket: ticket})
	}
	fmt.Println(err)
	os.Exit(0)
}

// asOther is the name under which this binary connects.
const asOther = "other"
