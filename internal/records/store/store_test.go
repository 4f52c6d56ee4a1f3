package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// newUnopened is a store of an empty place that nothing has used yet.
func newUnopened(t testing.TB, place string) *Store {
	t.Helper()
	s := newAt(place, Options{Now: noon})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestManyFirstCallsOpenTheDatabaseOnce(t *testing.T) {
	t.Parallel()
	s := newUnopened(t, newPlace(t))
	connections := make([]*connection, 16)
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			c, err := s.db.ensureConnected(context.Background())
			if err != nil {
				t.Error(err)
			}
			connections[i] = c
		})
	}
	wg.Wait()
	for _, c := range connections {
		if c != connections[0] {
			t.Fatal("opened more than once")
		}
	}
}

func TestCloseIsFinalAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	s := newUnopened(t, newPlace(t))
	wantEqual(t, s.Ping(context.Background()), nil)
	for range 2 {
		wantEqual(t, s.Close(), nil)
	}
	wantCode(t, s.Ping(context.Background()), fault.Internal)
	_, err := s.Ledger.Adopt(context.Background(), proposal("1", "checks/a.md"))
	wantCode(t, err, fault.Internal)
}

func TestACallWaitsForTheOpeningNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	s := newUnopened(t, newPlace(t))
	s.db.sem <- struct{}{} // somebody is opening
	wantCode(t, s.Ping(cancelled()), fault.Timeout)
	<-s.db.sem
}

// The version changes with every record, of any process, and not otherwise.
func TestTheVersionChangesWithWhatIsRecorded(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s, other := open(t, place, Options{Now: noon}), open(t, place, Options{Now: noon})
	_, known := s.Changes().Version(t.Context())
	if s.db.opts.DatabaseURL != "" {
		if known {
			t.Error("PostgreSQL does not tell")
		}
		return
	}
	version := func() string {
		t.Helper()
		v, known := s.Changes().Version(t.Context())
		if !known {
			t.Fatal("the version is not known")
		}
		return v
	}
	seen := map[string]bool{version(): true}
	changed := func(by string) {
		t.Helper()
		v := version()
		if seen[v] {
			t.Errorf("what %s has recorded is not seen: %q", by, v)
		}
		if again := version(); again != v {
			t.Errorf("%q became %q, and nothing was recorded", v, again)
		}
		seen[v] = true
	}
	wantEqual(t, s.Ledger.Record(t.Context(), attempt("one"), nil), nil)
	changed("this store")
	wantEqual(t, other.Ledger.Record(t.Context(), attempt("two"), nil), nil)
	changed("another")
	key := openedPull(t, other, 7)
	changed("another")
	wantEqual(t, s.Pulls.TriedPull(t.Context(), key), nil)
	changed("this store")
	must.Get(s.History.Proposal(t.Context(), "p7"))(t)
	if v := version(); !seen[v] {
		t.Error("reading is not a change")
	}
	wantEqual(t, s.Close(), nil)
	if _, known := s.Changes().Version(t.Context()); known {
		t.Error("a closed store knows no version")
	}
}

// What is read within a view belongs together, whatever others record meanwhile.
func TestAViewShowsTheRecordsAsTheyWere(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s, other := open(t, place, Options{Now: noon, Readers: 2}), open(t, place, Options{Now: noon})
	recordAttempts(t, s, attempt("before"))
	refusals := func(ctx context.Context) (n int) {
		counts := must.Get(s.History.RefusalsByCode(ctx, noon().Add(-time.Hour)))(t)
		rows := must.Get(s.History.Attempts(ctx, record.AttemptQuery{}))(t)
		for _, c := range counts {
			n += c.Count
		}
		wantEqual(t, n, len(rows))
		return n
	}
	err := s.Changes().View(t.Context(), func(ctx context.Context) error {
		wantEqual(t, refusals(ctx), 1)
		recordAttempts(t, other, attempt("meanwhile"))
		wantEqual(t, refusals(t.Context()), 2)
		wantEqual(t, refusals(ctx), 1)
		return fault.New(fault.Conflict, "as it is")
	})
	wantCode(t, err, fault.Conflict)
	wantEqual(t, refusals(t.Context()), 2)
}

// open allows one connection for reading. What a view asks beside its tables, as which locks are held, needs no second
// one, or pages side by side would wait for each other.
func TestAViewTakesNoSecondConnection(t *testing.T) {
	ctx, place := t.Context(), emptyPlace(t)
	s := open(t, place, Options{BusyTimeout: time.Second})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, s.AgentSessions.BeginSession(ctx, runningSession("s1")), nil)
	wantEqual(t, s.Connections().OpenConnection(ctx, record.Connection{ID: "c1", Since: noon()}), nil)
	wantEqual(t, s.db.withSnapshot(ctx, func(ctx context.Context) error {
		wantEqual(t, abandonedBy(ctx, t, s), map[string]bool{"1": false})
		wantEqual(t, len(must.Get(s.Connections().Connections(ctx))(t)), 1)
		return s.ScriptRuns().SettleScriptRuns(ctx, nil)
	}), nil)
}

func TestACallThatHoldsAConnectionMayNotWrite(t *testing.T) {
	s := openNew(t)
	record := func(ctx context.Context) error { return s.Ledger.Record(ctx, attempt("1"), nil) }
	wantCode(t, s.db.withSnapshot(t.Context(), record), fault.Internal)
	wantCode(t, s.db.writeTx(t.Context(), func(ctx context.Context, _ *sql.Tx) error { return record(ctx) }),
		fault.Internal)
	wantEqual(
		t,
		s.db.withSnapshot(t.Context(), func(ctx context.Context) error { return record(context.WithoutCancel(t.Context())) }),
		nil,
	) // one that has nothing to do with the view
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 1)
}

// A call that finds all connections in use gives up, and does not wait for as long as that lasts.
func TestAReadWaitsForAConnectionForAWhileOnly(t *testing.T) {
	s := open(t, emptyPlace(t), Options{BusyTimeout: time.Millisecond})
	wantEqual(t, s.db.withSnapshot(t.Context(), func(context.Context) error {
		err := fault.From(s.Ping(t.Context()))
		if err.Code != fault.Timeout || !strings.Contains(err.Message, s.Path()) || !err.Retryable() {
			t.Errorf("got %v", err)
		}
		return nil
	}), nil)
	wantEqual(t, s.Ping(t.Context()), nil)
}

// wantLocked fails the test unless the error says who keeps the call from writing.
func wantLocked(t testing.TB, err error, who string) {
	t.Helper()
	wantCode(t, err, fault.Timeout)
	e := fault.From(err)
	if !strings.Contains(e.Message, "the records are locked by "+who) || !strings.Contains(e.Message, " since ") ||
		e.RetryAfter <= 0 || !e.Retryable() {
		t.Errorf("got %v, after %s (cause %v)", err, e.RetryAfter, e.Cause)
	}
}

// Calls that write wait for one another and for other processes, and none of them waits longer than one of them may.
func TestCallsThatWaitForTheRecordsDoNotWaitForOneAnotherAsWell(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Second
	s := openWith(t, Options{BusyTimeout: patience})
	release := holdWriteLock(t, s)
	began := time.Now()
	var all sync.WaitGroup
	took := make([]time.Duration, 8)
	for i := range took {
		all.Go(func() {
			_, err := s.Ledger.Reserve(context.Background(), proposal(fmt.Sprint(i), fmt.Sprintf("checks/%d.md", i)),
				record.Claim{})
			wantLocked(t, err, "")
			// the result cannot be recorded either
			wantLocked(t, s.Ledger.Record(context.Background(), attempt(fmt.Sprint(i)), nil), "")
			took[i] = time.Since(began)
		})
	}
	all.Wait()
	// one after the other they would take 16 s, and 16 more to record it; the machine may be busy
	const most = 8 * patience
	for i, d := range took {
		if d >= most {
			t.Errorf("call %d took %s", i, d)
		}
	}
	release()
	recordAttempts(t, s, attempt("after"))
	if s.db.turns.stuck.Load() {
		t.Error("nobody waits as long as one may any more")
	}
}

func TestWhoHoldsTheRecordsIsNamed(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	pid, end := usedBy(t, "write-for-long", place, "0.9.7")
	s := open(t, place, Options{BusyTimeout: 10 * time.Millisecond})
	err := s.Ledger.Record(context.Background(), attempt("1"), nil)
	wantLocked(t, err, "")
	wantCode(t, err, fault.Timeout, "claudeops 0.9.7 serve", fmt.Sprint("process ", pid), " UTC; this call waited")
	if strings.Contains(err.Error(), "or before") {
		t.Errorf("it is known since when: %v", err)
	}
	end()
	// A busy machine may need longer than this store waits.
	for end := time.Now().Add(time.Minute); ; {
		err = s.Ledger.Record(context.Background(), attempt("1"), nil)
		if fault.CodeOf(err) != fault.Timeout || time.Now().After(end) {
			break
		}
	}
	wantEqual(t, err, nil)
}

// usedBy starts a process of a version that uses the place, or writes there for long.
func usedBy(t testing.TB, part, place, version string) (pid int, end func()) {
	t.Helper()
	cmd := child(t, part, place, version)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	wantEqual(t, cmd.Start(), nil)
	line := make([]byte, len("there\n"))
	must.Get(out.Read(line))(t)
	return cmd.Process.Pid, func() {
		t.Helper()
		wantEqual(t, in.Close(), nil)
		wantEqual(t, cmd.Wait(), nil)
	}
}

// A callback about new rows of the audit may write, as the export of their heads does.
func TestWhoHearsOfNewRowsMayWrite(t *testing.T) {
	t.Parallel()
	var s *Store
	heard := 0
	s = openWith(t, Options{Appended: func(ctx context.Context) {
		heard++
		wantEqual(t, s.db.exec(ctx, "DELETE FROM rounds"), nil)
	}})
	recordAttempts(t, s, attempt("1"))
	wantEqual(t, heard, 1)
}

func TestCheckNoticesMissingGuards(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	mustExec(t, raw(t, s), dropOneGuard())
	err := s.Check(context.Background())
	wantCode(t, err, fault.Internal, "removed the triggers")
}

func TestEveryMethodHonoursACancelledContext(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), cancelled()
	_, openErr := openPlace(ctx, newPlace(t), Options{})
	_, openedErr := s.History.ByDigest(ctx, "d")
	_, reserveErr := s.Ledger.Reserve(ctx, proposal("1", "checks/a.md"), record.Claim{})
	_, auditErr := s.Audit.Page(ctx, record.AuditQuery{})
	_, verifyErr := s.Audit.Verify(ctx, "")
	_, prErr := s.LocalPulls.PRs(ctx, "demo/home-cluster", "")
	for name, err := range map[string]error{
		"Open": openErr, "Opened": openedErr, "Reserve": reserveErr, "Audit": auditErr, "VerifyAudit": verifyErr,
		"PRs":    prErr,
		"Record": s.Ledger.Record(ctx, attempt("1"), nil), "Check": s.Check(ctx), "Ping": s.Ping(ctx),
	} {
		if fault.CodeOf(err) != fault.Timeout {
			t.Errorf("%s: %v (cause %v)", name, err, errCause(err))
		}
	}
}

func TestAWaitingWriterHonoursItsContext(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	release := holdWriteLock(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	wantCode(t, s.Ledger.Record(ctx, attempt("1"), nil), fault.Timeout)
	release()
	recordAttempts(t, s, attempt("1"))
}

// laterVersion has our migrations and one more, with the statements.
func laterVersion(t testing.TB, statements string) Options {
	t.Helper()
	later := fstest.MapFS{}
	for _, dir := range []string{sqliteMigrations, postgresMigrations} {
		for _, entry := range must.Get(fs.ReadDir(migrations, dir))(t) {
			name := path.Join(dir, entry.Name())
			later[name] = &fstest.MapFile{Data: must.Get(fs.ReadFile(migrations, name))(t)}
		}
		later[path.Join(dir, "09999_later.sql")] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + statements)}
	}
	return Options{Now: noon, migrations: later, Process: Process{Version: "1.0.0"}}
}

const addTable = "CREATE TABLE later (id INTEGER);\n"

func TestADatabaseOfAnOlderVersionIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s := open(t, place, Options{Now: noon})
	recordAttempts(t, s, attempt("old"))
	older := versionAt(t, place)
	wantEqual(t, s.Close(), nil)

	// A migration that fails leaves everything as it was.
	_, err := openPlace(t.Context(), place, laterVersion(t, addTable+"DROP TABLE not_there;\n"))
	wantCode(t, err, fault.Internal)
	wantEqual(t, versionAt(t, place), older)
	s = open(t, place, Options{Now: noon})
	wantEqual(t, verify(t, s, "").Rows, int64(1))
	wantEqual(t, s.Close(), nil)

	s = open(t, place, laterVersion(t, addTable))
	wantEqual(t, []int{versionAt(t, place), count(t, s, "SELECT COUNT(*) FROM later")}, []int{9999, 0})
	wantEqual(t, s.Check(t.Context()), nil)
	recordAttempts(t, s, attempt("new"))
	wantEqual(t, verify(t, s, "").Rows, int64(2))

	_, err = openPlace(t.Context(), place, Options{})
	wantCode(t, err, fault.Misconfigured, "written by a newer claudeops (schema 9999")
}

func TestADatabaseFromBeforeTheFirstReleaseIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	wantEqual(t, open(t, place, Options{}).Close(), nil)
	older, later := versionAt(t, place), laterVersion(t, addTable)
	maps.DeleteFunc(later.migrations.(fstest.MapFS), func(name string, _ *fstest.MapFile) bool {
		return !strings.Contains(name, "later")
	})
	_, err := openPlace(t.Context(), place, later)
	wantCode(t, err, fault.Misconfigured)
	if !strings.Contains(err.Error(), "before the first release (schema "+strconv.Itoa(older)) {
		t.Errorf("got %v", err)
	}
	wantEqual(t, versionAt(t, place), older)
	wantEqual(t, open(t, place, Options{}).Check(t.Context()), nil)
}

func TestTablesAreNotChangedUnderAProcessOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	pid, end := usedBy(t, "use", place, "0.9.7")
	older := versionAt(t, place)
	_, err := openPlace(context.Background(), place, laterVersion(t, addTable))
	wantCode(t, err, fault.Misconfigured, "claudeops 0.9.7 serve", fmt.Sprint("process ", pid), "nothing was changed")
	wantEqual(t, versionAt(t, place), older)
	end()
	open(t, place, laterVersion(t, addTable))
	wantEqual(t, versionAt(t, place), 9999)
}

func TestAKilledProcessOfAnOlderVersionDoesNotHoldUpAMigration(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	cmd, _ := holder(t, place, "one")
	kill(t, cmd)
	open(t, place, laterVersion(t, addTable))
}
