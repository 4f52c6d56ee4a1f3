//go:build postgres

package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func sessionOf(s *Store) *sessionLocks { return s.db.conn.locks.(*sessionLocks) }

// endSession ends the session that holds the locks of s, and returns when it has another one.
func endSession(t *testing.T, s *Store) {
	t.Helper()
	l := sessionOf(s)
	wantEqual(t, l.lock(t.Context()), nil)
	before := l.self
	l.unlock()
	mustExec(t, raw(t, s), fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", before.pid))
	until(t, func() bool {
		_ = l.lock(t.Context())
		defer l.unlock()
		return l.conn != nil && l.self != before
	})
}

// until waits for what other processes, the server among them, bring about.
func until(t *testing.T, true func() bool) {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for !true() {
		if time.Now().After(limit) {
			t.Fatal("it did not come about within a minute")
		}
		runtime.Gosched()
	}
}

func TestASessionThatEndsIsMadeAgainAndTakesAllItHeld(t *testing.T) {
	ctx, place := t.Context(), emptyPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, s.AgentSessions.BeginSession(ctx, runningSession("s1")), nil)
	r := record.ScriptRun{ID: "r1", State: record.ScriptRunning, StartedAt: noon(), EndsBy: time.Now().Add(time.Hour)}
	wantEqual(t, s.ScriptRuns().BeginScriptRun(ctx, r), nil)
	wantEqual(t, s.Connections().OpenConnection(ctx, record.Connection{ID: "c1", Since: noon()}), nil)
	endSession(t, s)

	wantEqual(t, abandoned(t, other), map[string]bool{"1": false})
	closed, err := other.AgentSessions.CloseInterrupted(ctx)
	wantEqual(t, err, nil)
	wantEqual(t, len(closed), 0)
	wantEqual(t, other.ScriptRuns().SettleScriptRuns(ctx, nil), nil) // has none to make a row of
	wantEqual(t, len(must.Get(other.Connections().Connections(ctx))(t)), 1)
	finish(t, s, "1", opened(1))
	wantEqual(t, other.Close(), nil)
	var users []string // by which a newer program knows that this one is here
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if users, err = s.db.conn.engine.(*postgresEngine).users(ctx, raw(t, s)); err != nil || len(users) < 2 {
			break
		} // the server's process for a connection ends some time after it was closed
	}
	wantEqual(t, err, nil)
	wantEqual(t, len(users), 1)
}

// What ended the session of this process, a restart of the server say, may have ended those of the others.
func TestAProcessThatLostItsSessionTakesNobodyForGoneAtOnce(t *testing.T) {
	place := emptyPlace(t)
	s := open(t, place, Options{})
	other := openUnclosed(t, place)
	reserve(t, other, proposal("1", "checks/a.md"), 0)
	name := nameIn(t, other, "1")
	endSession(t, s)
	wantEqual(t, other.Close(), nil)
	waitUntilEnded(t, s, name)
	wantEqual(t, abandoned(t, s), map[string]bool{"1": false})
	l := sessionOf(s)
	wantEqual(t, l.lock(t.Context()), nil)
	l.remade = l.remade.Add(-settleAfterOwn)
	l.unlock()
	wantEqual(t, abandoned(t, s), map[string]bool{"1": true})
}

func TestAStoreWhoseWorkWasTakenOverIsFencedOff(t *testing.T) {
	ctx, place := t.Context(), emptyPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, must.Get(other.Ledger.Adopt(ctx, must.Get(other.History.Unfinished(ctx))(t)[0]))(t), true)
	wantCode(t, s.Ledger.Finish(ctx, "1", opened(1), attempt("late")), fault.Conflict)
	finish(t, other, "1", record.Progress{State: record.StateFailed})
}

// A connection that writes may outlive the session by which a newer program knows of this one.
func TestNothingIsWrittenIntoTheTablesOfANewerProgram(t *testing.T) {
	s := openNew(t)
	recordAttempts(t, s, attempt("1"))
	mustExec(t, raw(t, s), "INSERT INTO "+versionTable+" (version_id, is_applied) VALUES (99, true)")
	err := s.Ledger.Record(t.Context(), attempt("2"), nil)
	wantCode(t, err, fault.Misconfigured)
	must.Contain(t, err.Error(), "a newer claudeops")
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 1)
	l := sessionOf(s)
	mustExec(t, raw(t, s), fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", l.self.pid))
	until(t, func() bool { return l.usable() != nil })
	wantCode(t, s.Ping(t.Context()), fault.Misconfigured) // for good
}

func TestNothingIsWrittenWhileTheSessionCannotBeMade(t *testing.T) {
	p := newProxy(t)
	s := open(t, p.place(t, emptyPlace(t)), Options{Now: noon})
	recordAttempts(t, s, attempt("1"))
	p.refuse(true)
	l := sessionOf(s)
	mustExec(t, connect(t, os.Getenv(testDatabase)), fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", l.self.pid))
	until(t, func() bool {
		return fault.CodeOf(s.db.conn.asFault(t.Context(), l.ready(t.Context()))) == fault.UpstreamError
	})
	err := fault.From(s.Ledger.Record(t.Context(), attempt("2"), nil))
	if err.Code != fault.UpstreamError || !strings.Contains(err.Message, s.Path()) || !err.Retryable() {
		t.Errorf("got %v", err)
	}
	p.refuse(false)
	until(t, func() bool { return s.Ledger.Record(t.Context(), attempt("3"), nil) == nil })
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 2)
}

// A partition, or a pooler that is stuck, leaves statements without an answer for as long as it lasts.
func TestAServerThatFallsSilentStopsNoCallForLong(t *testing.T) {
	p := newProxy(t)
	place := emptyPlace(t)
	s := open(t, p.place(t, place), Options{Now: noon, BusyTimeout: 300 * time.Millisecond, Silence: time.Second})
	recordAttempts(t, s, attempt("1"))
	wantEqual(t, s.Ping(t.Context()), nil)
	p.freeze(true)
	for name, call := range map[string]func() error{
		"a write": func() error { return s.Ledger.Record(context.Background(), attempt("2"), nil) },
		"a read":  func() error { return s.Ping(context.Background()) },
		"a write with a limit": func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
			defer cancel()
			return s.Ledger.Record(ctx, attempt("3"), nil)
		},
	} {
		err := fault.From(call())
		if err == nil || !err.Retryable() || !strings.Contains(err.Message, s.Path()) ||
			strings.Contains(err.Message, "program") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	p.freeze(false)
	until(t, func() bool { return s.Ledger.Record(t.Context(), attempt("4"), nil) == nil })
	wantEqual(t, s.Ping(t.Context()), nil)
}

// The clock of one host, or of all, has no part in what several decide together.
func TestTheServersClockDecides(t *testing.T) {
	ctx, place := t.Context(), emptyPlace(t)
	var schema string
	wantEqual(t, rawPlace(t, place).QueryRow("SELECT current_schema()").Scan(&schema), nil)
	open(t, place, Options{})
	mustExec(t, rawPlace(t, place), `CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql
		AS $$ SELECT pg_catalog.clock_timestamp() + interval '61 minutes' $$`)
	s := open(t, withParameter(t, place, "search_path", schema+",pg_catalog"), Options{})
	if skew, known := s.ClockSkew(); !known || skew < time.Hour || skew > 62*time.Minute {
		t.Errorf("the skew is %s", skew)
	}
	if ahead := time.Until(s.Now()); ahead < time.Hour || ahead > 62*time.Minute {
		t.Errorf("the store is %s ahead of the host", ahead)
	}
	mine, next, err := s.JobClaims.ClaimRound(ctx, "sweep", 2*time.Minute)
	if err != nil || !mine || time.Until(next) < time.Hour {
		t.Fatalf("claimed %t, again at %s, %v", mine, next, err)
	}
	mine, _, err = s.JobClaims.ClaimRound(ctx, "sweep", 2*time.Minute)
	wantEqual(t, []any{mine, err}, []any{false, nil})
}

func TestACancelledReservationEndsNoOtherLock(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	_, err := s.Ledger.Reserve(cancelled(), proposal("2", "checks/b.md"), record.Claim{})
	wantCode(t, err, fault.Timeout)
	wantEqual(t, abandoned(t, other), map[string]bool{"1": false})
	session := sessionOf(s).conn
	reserve(t, s, proposal("3", "checks/c.md"), 0)
	wantEqual(t, sessionOf(s).conn == session, true)
	wantEqual(t, abandoned(t, other), map[string]bool{"1": false, "3": false})
}

func TestASessionIsNotEndedForBeingIdle(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s := open(t, withParameter(t, place, "idle_session_timeout", "1h"), Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	var timeout string
	wantEqual(t, sessionOf(s).conn.QueryRow(t.Context(), "SHOW idle_session_timeout").Scan(&timeout),
		nil)
	wantEqual(t, timeout, "0")
}

func TestANameThatIsTakenIsAFault(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	same := Options{NewID: func() string { return t.Name() }}
	s, other := open(t, place, same), open(t, place, same)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	_, err := other.Ledger.Reserve(t.Context(), proposal("2", "checks/b.md"), record.Claim{})
	wantCode(t, err, fault.Internal)
}

// openUnclosed is open for a store that the test closes.
func openUnclosed(t *testing.T, place string) *Store {
	t.Helper()
	return must.Get(openPlace(t.Context(), place, Options{Readers: 1}))(t)
}

// proxy is between a store and the server. It can freeze what passes, as a partition does, and refuse connections.
type proxy struct {
	listener net.Listener
	server   string

	mu      sync.Mutex
	frozen  chan struct{} // closed when bytes pass
	refuses bool
	conns   []net.Conn
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	u, err := url.Parse(os.Getenv(testDatabase))
	if err != nil {
		t.Fatal("the URL cannot be parsed")
	}
	p := &proxy{server: u.Host, frozen: make(chan struct{})}
	close(p.frozen)
	p.listener = must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(p.close)
	go p.serve()
	return p
}

// place is the place as the proxy has it.
func (p *proxy) place(t *testing.T, place string) string {
	t.Helper()
	return changed(t, place, func(u *url.URL) { u.Host = p.listener.Addr().String() })
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuses := p.refuses
		p.mu.Unlock()
		server, err := net.Dial("tcp", p.server)
		if err != nil || refuses {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		go p.pass(client, server)
		go p.pass(server, client)
	}
}

func (p *proxy) pass(to, from net.Conn) {
	defer func() { _ = errors.Join(to.Close(), from.Close()) }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		frozen := p.frozen
		p.mu.Unlock()
		<-frozen
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// freeze lets no bytes pass, or all again.
func (p *proxy) freeze(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on {
		p.frozen = make(chan struct{})
		return
	}
	close(p.frozen)
}

// refuse refuses new connections, or takes them again.
func (p *proxy) refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = on
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}
