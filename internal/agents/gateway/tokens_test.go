//go:build unix

package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// tokens admits any caller with "good-NAME", at tier 2, unless the name was revoked.
type tokens struct {
	*world
	path    string
	revoked atomic.Bool
	looks   chan []string // the credentials of each look, the newest left out if nobody reads
}

func openTokens(t *testing.T, limits gateway.Limits) *tokens {
	t.Helper()
	return openTokensWith(t, settings{limits: limits})
}

func openTokensWith(t *testing.T, s settings) *tokens {
	t.Helper()
	w := &tokens{world: open(t, s), looks: make(chan []string)}
	dir := must.Get(os.MkdirTemp("", "tokens"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.path = filepath.Join(dir, "a.sock")
	tokens := gateway.NewTokens(w.host, func(_ context.Context, token string) (gateway.AuthenticatedConn, error) {
		name, good := strings.CutPrefix(token, "good-")
		if !good || w.revoked.Load() {
			return gateway.AuthenticatedConn{}, fault.New(fault.Unauthenticated, "the token is not a valid agent token")
		}
		return gateway.AuthenticatedConn{Rights: gateway.Rights{Tier: gitprovider.TierInvestigate}, Credential: name}, nil
	}, func(_ context.Context, credentials []string) ([]string, error) {
		select {
		case w.looks <- credentials:
		default:
		}
		if w.revoked.Load() {
			return credentials, nil
		}
		return nil, nil
	})
	d := gateway.TokenDoor{Tokens: tokens, Path: w.path}
	listener := must.Get(d.Listen(t.Context()))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { d.Serve(ctx, listener) })
	serving.Go(func() { tokens.Keep(ctx) })
	t.Cleanup(func() { cancel(); serving.Wait() })
	return w
}

func (w *tokens) dial(token string, l stdioproxy.Lower) (stdioproxy.Conn, error) {
	return stdioproxy.Dial(context.Background(), "unix:"+w.path, stdioproxy.Hello{Ticket: token, Lower: l})
}

func (w *tokens) mustDial(t *testing.T, token string, l stdioproxy.Lower) stdioproxy.Conn {
	t.Helper()
	conn := must.Get(w.dial(token, l))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestATokenLetsInAtItsTierAndNoHigher(t *testing.T) {
	w := openTokens(t, gateway.Limits{})
	conn := w.mustDial(t, "good-laptop", stdioproxy.Lower{Tier: 3})
	if r := <-w.rights; r.Tier != gitprovider.TierInvestigate || r.Session != "" {
		t.Errorf("rights %+v", r)
	}
	if list := w.host.Connections(); len(list) != 1 || list[0].Credential != "laptop" || list[0].Way != "unix" ||
		!strings.Contains(list[0].Peer, fmt.Sprint("uid ", uid())) {
		t.Errorf("connections %+v", list)
	}
	must.Get(fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`))(t)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line == "" {
		t.Errorf("%q, %v", line, err)
	}
	_ = w.mustDial(t, "good-laptop", stdioproxy.Lower{Tier: 1, DryRun: true})
	if r := <-w.rights; r.Tier != gitprovider.TierObserve || !r.DryRun {
		t.Errorf("lowered: %+v", r)
	}
}

func TestAConnectionWhoseTokenWasRevokedIsCutOffAndDoesNotComeBack(t *testing.T) {
	w := openTokens(t, gateway.Limits{Look: 10 * time.Millisecond})
	conn := w.mustDial(t, "good-laptop", stdioproxy.Lower{})
	<-w.rights
	w.revoked.Store(true)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil { // ends when the connection does
		t.Errorf("it goes on: %q", line)
	}
	_, err := w.dial("good-laptop", stdioproxy.Lower{})
	if e := refusal(t, err); e.Code != string(fault.Unauthenticated) || e.Retry {
		t.Errorf("got %+v", e)
	}
}

// However many connections there are, the tokens are read once for all of them.
func TestOneLookIsForTheTokensOfAllConnections(t *testing.T) {
	w := openTokens(t, gateway.Limits{Look: 10 * time.Millisecond})
	for _, token := range []string{"good-laptop", "good-laptop", "good-desk"} {
		w.mustDial(t, token, stdioproxy.Lower{})
		<-w.rights
	}
	first, second := <-w.looks, <-w.looks // the first may have begun before all were there
	if slices.Sort(second); !slices.Equal(second, []string{"desk", "laptop"}) {
		t.Errorf("looks for %q, then %q", first, second)
	}
}

func TestManyConnectionsAndRefusedHandshakesAreBounded(t *testing.T) {
	const rows = 3
	w := openTokens(t, gateway.Limits{Connections: 2, Rows: rows})
	var wg sync.WaitGroup
	var refused, in atomic.Int64
	for i := range 100 {
		wg.Go(func() {
			token := "bad"
			if i%2 == 0 {
				token = "good-laptop"
			}
			conn, err := w.dial(token, stdioproxy.Lower{})
			if err != nil {
				refused.Add(1)
				return
			}
			in.Add(1)
			t.Cleanup(func() { _ = conn.Close() })
		})
	}
	wg.Wait()
	if in.Load() != 2 || refused.Load() != 98 {
		t.Errorf("%d were let in, %d refused", in.Load(), refused.Load())
	}
	must.Equal(t, len(w.audit()), rows)
	if n := len(w.host.Connections()); n > 2 {
		t.Errorf("%d connections", n)
	}
}

// TestATokenThatConnectsAgainAndAgainIsRefused connects and leaves: beyond the bound nothing is written any more, but
// for one row.
func TestATokenThatConnectsAgainAndAgainIsRefused(t *testing.T) {
	const bound = 3
	kept := &records{open: map[string]record.Connection{}}
	w := openTokensWith(t, settings{limits: gateway.Limits{Messages: bound}, records: kept})
	try := func(token string) error {
		conn, err := w.dial(token, stdioproxy.Lower{})
		if err == nil {
			<-w.rights
			_ = conn.Close()
		}
		return err
	}
	for range bound {
		must.Do(t, try("good-laptop"))
		for end := time.Now().Add(time.Minute); len(w.host.Connections()) > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a connection does not end")
			}
		}
	}
	for range 50 {
		if e := refusal(t, try("good-laptop")); e.Code != string(fault.LimitReached) || !e.Retry ||
			!strings.Contains(e.Message, "within an hour, and can again in") {
			t.Fatalf("got %+v", e)
		}
	}
	if rows := w.audit(); len(rows) != 1 || rows[0].Code != fault.LimitReached ||
		!strings.Contains(rows[0].Message, "laptop: this token") {
		t.Errorf("recorded: %+v", rows)
	}
	kept.mu.Lock()
	if kept.opened > bound {
		t.Errorf("%d connections were recorded", kept.opened)
	}
	kept.mu.Unlock()
	if err := try("good-desk"); err != nil {
		t.Errorf("another token: %v", err)
	}
	w.pass(time.Hour)
	if err := try("good-laptop"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// TestATokenGainsNothingByConnectingAnew sends as much as it may, leaves, and comes back: it has to wait all the same.
func TestATokenGainsNothingByConnectingAnew(t *testing.T) {
	const bound = 5
	w := openTokens(t, gateway.Limits{Messages: bound})
	first := w.mustDial(t, "good-laptop", stdioproxy.Lower{})
	lines := bufio.NewReader(first)
	for range bound {
		must.Get(fmt.Fprintln(first, `{"jsonrpc":"2.0","id":1,"method":"ping"}`))(t)
		must.Get(lines.ReadString('\n'))(t)
	}
	_ = first.Close()
	second := w.mustDial(t, "good-laptop", stdioproxy.Lower{})
	must.Get(fmt.Fprintln(second, `{"jsonrpc":"2.0","id":2,"method":"ping"}`))(t)
	answered := make(chan struct{})
	go func() {
		if _, err := bufio.NewReader(second).ReadString('\n'); err == nil {
			close(answered)
		}
	}()
	select {
	case <-answered:
		t.Error("it may send as much again")
	case <-time.After(100 * time.Millisecond):
	}
}

func TestASocketIsTakenOnlyFromAProcessThatHasEnded(t *testing.T) {
	w := openTokens(t, gateway.Limits{})
	d := gateway.TokenDoor{Path: w.path}
	if listener, err := d.Listen(t.Context()); err == nil {
		_ = listener.Close()
		t.Error("a socket that is served was taken")
	}
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, []byte("x"), 0o600))
	if listener, err := (gateway.TokenDoor{Path: file}).Listen(t.Context()); err == nil {
		_ = listener.Close()
		t.Error("a file was taken")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// clients hands out each Client that is served.
func clients() (serve func(context.Context, gateway.Rights, gateway.Client) error, served chan gateway.Client) {
	served = make(chan gateway.Client, 10)
	return func(ctx context.Context, r gateway.Rights, c gateway.Client) error {
		served <- c
		return echo(ctx, r, c)
	}, served
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("got %v, want %q", err, code)
	}
}

// A call that begins before the Host has seen that its connection is cut off must not write.
func TestWhoWasCutOffInTheRecordsIsNotAdmittedAnyMoreAtOnce(t *testing.T) {
	r := &records{open: map[string]record.Connection{}, cut: map[string]bool{}}
	serve, served := clients()
	w := open(t, settings{records: r, serve: serve, limits: gateway.Limits{Look: time.Hour}})
	w.enter(stdioproxy.Lower{})
	w.enter(stdioproxy.Lower{})
	first, second := <-served, <-served
	r.await(t, "both", func() bool { return len(r.open) == 2 })
	wantCode(t, first.Admitted(t.Context()), "")
	r.mu.Lock()
	r.broken = 1
	r.mu.Unlock()
	wantCode(t, first.Admitted(t.Context()), fault.Internal) // the check itself fails
	r.cutOne()
	wantCode(t, first.Admitted(t.Context()), fault.Unauthenticated)
	wantCode(t, second.Admitted(t.Context()), fault.Unauthenticated)
}

func TestWhoseConnectionIsOverIsNotAdmittedAnyMore(t *testing.T) {
	serve, served := clients()
	w := open(t, settings{serve: serve})
	w.enter(stdioproxy.Lower{})
	c := <-served
	wantCode(t, c.Admitted(t.Context()), "")
	w.host.Cut(w.host.Connections()[0].ID)
	wantCode(t, c.Admitted(t.Context()), fault.Unauthenticated)
}

func TestTheSessionIsAskedWhetherItMayGoOn(t *testing.T) {
	serve, served := clients()
	var over atomic.Bool
	w := open(t, settings{serve: serve, still: func(context.Context) error {
		if over.Load() {
			return fault.New(fault.Unauthenticated, "it is to end")
		}
		return nil
	}})
	w.enter(stdioproxy.Lower{})
	c := <-served
	wantCode(t, c.Admitted(t.Context()), "")
	over.Store(true)
	wantCode(t, c.Admitted(t.Context()), fault.Unauthenticated)
}
