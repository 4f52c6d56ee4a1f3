package store

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	_ "modernc.org/sqlite"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// TestMain runs a child's part when a test started this binary again; see below.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childFlag {
		if err := runChild(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := enginePrepared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// clock is a time that tests move.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// open opens a store with a single connection that reads: a call that needs a second one while it holds one waits in
// vain.
func open(t testing.TB, place string, opts Options) *Store {
	t.Helper()
	if opts.Readers == 0 {
		opts.Readers = 1
	}
	s := must.Get(openPlace(context.Background(), place, opts))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func openNew(t testing.TB) *Store {
	t.Helper()
	return openWith(t, Options{Now: noon})
}

func openWith(t testing.TB, opts Options) *Store {
	t.Helper()
	opts.NoSync = true
	return open(t, emptyPlace(t), opts)
}

func mustExec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func count(t testing.TB, s *Store, query string, args ...any) (n int) {
	t.Helper()
	if err := readerOf(s).QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func proposal(id string, paths ...string) record.Proposal {
	slices.Sort(paths)
	p := record.Proposal{
		ID: id, CreatedAt: noon(), Door: record.DoorMCP, Caller: "claude-code/2.1", Tier: gitprovider.TierInvestigate,
		Provider: "local", Owner: "demo", Repo: "home-cluster", Base: "main", BaseCommit: "b45e",
		ChangeType: gitprovider.TypeCheck, Title: "Watch the disk", Body: "It was full: C:\\ and /\n", Digest: "d-" + id,
		Progress: record.Progress{State: record.StateReserved},
	}
	for _, path := range paths {
		p.Files = append(p.Files, gitprovider.FileChange{
			Path: path, Action: gitprovider.ActionCreate, Content: "# " + path + "\n",
		})
	}
	return p
}

func attempt(id string) record.Attempt {
	return record.Attempt{
		Time: noon(), RequestID: id, Door: record.DoorMCP, Caller: "claude-code/2.1", Tier: gitprovider.TierInvestigate,
		Action: "create_pr", Provider: "local", Owner: "demo", Repo: "home-cluster", Base: "main", Title: "Watch the disk",
		Paths: []string{"checks/disk.md", "Dockerfile"}, Digest: "d-" + id,
		Verdicts: []record.Verdict{
			{Gate: record.GateTier, Ruling: record.Pass, Detail: "tier 2, 2 files"},
			{Gate: record.GateScope, Ruling: record.Deny, Violations: []fault.Violation{{
				Code: fault.ScopeDenied, Path: "Dockerfile", Rule: "Dockerfile", Message: "the path <Dockerfile> is protected",
				Suggestion: "leave it",
			}}},
		},
		Outcome: record.OutcomeRefused, Code: fault.ScopeDenied, Message: "1 path is outside the scope",
		Duration: 1234 * time.Microsecond,
	}
}

func recordAttempts(t testing.TB, s *Store, attempts ...record.Attempt) {
	t.Helper()
	for _, a := range attempts {
		must.Do(t, s.Ledger.Record(context.Background(), a, nil))
	}
}

func reserve(t testing.TB, s *Store, p record.Proposal, seen record.Position) *record.Proposal {
	t.Helper()
	return must.Get(s.Ledger.Reserve(context.Background(), p, record.Claim{Seen: seen}))(t)
}

// together makes n calls at once, and returns how many of them did what only one may do.
func together(t *testing.T, n int, call func(i int) (did bool, err error)) (all int64) {
	t.Helper()
	var did atomic.Int64
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			yes, err := call(i)
			if err != nil {
				t.Errorf("call %d: %v (cause %v)", i, err, errCause(err))
			}
			if yes {
				did.Add(1)
			}
		})
	}
	calls.Wait()
	return did.Load()
}

// processes runs a part in sixteen processes at once, which differ by a number, and returns what they say.
func processes(t *testing.T, part, place string, more ...string) string {
	t.Helper()
	const many = 16
	said := make(chan string, many)
	together(t, many, func(i int) (bool, error) {
		out, err := child(t, part, append([]string{place, fmt.Sprint(i)}, more...)...).Output()
		said <- string(out)
		return false, err
	})
	close(said)
	var all strings.Builder
	for out := range said {
		all.WriteString(out)
	}
	return all.String()
}

// each returns something of each row.
func each[T, V any](rows []T, of func(T) V) (out []V) {
	for _, row := range rows {
		out = append(out, of(row))
	}
	return out
}

func numberOf(r record.PullRecord) int { return r.Number }

// cancelled is a context that has ended: a call with it records nothing, as one that finds the disk full.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// found returns what a search has found; the test ends if it found nothing.
func found[T any](value T, ok bool, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil || !ok {
			t.Fatalf("found %t, %v (cause %v)", ok, err, errCause(err))
		}
		return value
	}
}

// wantFree reserves the paths of a proposal, which are free.
func wantFree(t testing.TB, s *Store, p record.Proposal, seen record.Position) {
	t.Helper()
	if taken := reserve(t, s, p, seen); taken != nil {
		t.Fatalf("%s: taken by %+v", p.ID, taken)
	}
}

// wantTaken tries to reserve the paths of a proposal, of which another one holds some.
func wantTaken(t testing.TB, s *Store, p record.Proposal, seen record.Position, by string) *record.Proposal {
	t.Helper()
	taken := reserve(t, s, p, seen)
	if taken == nil || taken.ID != by {
		t.Fatalf("%s: taken by %+v, want by %s", p.ID, taken, by)
	}
	return taken
}

func verify(t testing.TB, s *Store, expectHead string) record.AuditReport {
	t.Helper()
	return must.Get(s.Audit.Verify(context.Background(), expectHead))(t)
}

func wantCode(t testing.TB, err error, code fault.Code, words ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got error %v (cause %v), want the code %q", err, errCause(err), code)
	}
	if err != nil {
		must.Contain(t, err.Error(), words...)
	}
}

func errCause(err error) error {
	if err == nil {
		return nil
	}
	return fault.From(err).Cause
}

func wantEqual(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(auditRow{}, auditColumn{}), cmpopts.EquateErrors()); diff != "" {
		t.Fatalf("difference (-want +got):\n%s", diff)
	}
}

// appendMany appends rows; see recordTogether.
func appendMany(t testing.TB, s *Store, n int) {
	t.Helper()
	recordTogether(t, s, n, func(i int) record.Attempt { return attempt(fmt.Sprintf("r%d", i)) })
}

// recordTogether appends rows in one transaction, which costs one sync instead of n.
func recordTogether(t testing.TB, s *Store, n int, row func(i int) record.Attempt) {
	t.Helper()
	must.Do(t, s.db.writeTx(context.Background(), func(ctx context.Context, tx *sql.Tx) error {
		for i := range n {
			if _, err := s.db.appendAudit(ctx, tx, row(i)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// childFlag, as the first argument, makes this test binary run one of the parts below instead of the tests.
const childFlag = "-store-child"

// child is a command that runs a part in a process of its own.
func child(t testing.TB, part string, args ...string) *exec.Cmd {
	t.Helper()
	binary := must.Get(os.Executable())(t)
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		binary = "/proc/self/exe" // works for another user too, who may not look into the folder of the binary
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{childFlag, part}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"} // the race detector lets a process linger for a second at its end
	return cmd
}

func runChild(part string, args []string) error {
	ctx := context.Background()
	switch part {
	case "race":
		return childRace(ctx, args[0], args[1], args[2])
	case "race-for-places":
		return childRaceForPlaces(ctx, args[0], args[1], args[2])
	case "hold":
		return childHold(ctx, args[0], args[1])
	case "see-merged":
		return childSeeMerged(ctx, args[0])
	case "use":
		return childUse(ctx, args[0], args[1], "")
	case "write-for-long":
		return childUse(ctx, args[0], args[1], "writes")
	case "finish-forever":
		return childFinishForever(ctx, args[0])
	}
	return runEngineChild(ctx, part, args)
}

// childRace tries to reserve the same path as all its siblings, and appends to the audit in between.
func childRace(ctx context.Context, place, name, rounds string) error {
	n, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	s, err := openPlace(ctx, place, Options{})
	if err != nil {
		return err
	}
	for round := range n {
		id := fmt.Sprintf("%s-%d", name, round)
		p := proposal(id, fmt.Sprintf("checks/%d.md", round), fmt.Sprintf("checks/%s.md", id))
		taken, err := s.Ledger.Reserve(ctx, p, record.Claim{})
		if err != nil {
			return err
		}
		if taken == nil {
			fmt.Println("won", round)
		}
		if err := s.Ledger.Record(ctx, attempt(id), nil); err != nil {
			return err
		}
	}
	return s.Close()
}

// childFinishForever opens proposals until it is killed, and says so after each.
func childFinishForever(ctx context.Context, place string) error {
	s, err := openPlace(ctx, place, Options{})
	if err != nil {
		return err
	}
	_, hash, err := s.Audit.Head(ctx)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", hash[:8], i)
		p := proposal(id, "checks/a-"+id+".md", "checks/b-"+id+".md")
		if _, err := s.Ledger.Reserve(ctx, p, record.Claim{}); err != nil {
			return err
		}
		to := record.Progress{State: record.StateOpened, PRNumber: i + 1}
		if err := s.Ledger.Finish(ctx, id, to, attempt(id)); err != nil {
			return err
		}
		fmt.Println(id)
	}
}

// childUse opens a place as a process of a version, or begins to write there and does not end, says so, and waits until
// it is killed or its stdin is closed.
func childUse(ctx context.Context, place, version, writes string) error {
	s, err := openPlace(ctx, place, Options{Process: Process{Version: version, Command: "serve"}})
	if err != nil {
		return err
	}
	wait := func() error {
		fmt.Println("there")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	if writes == "" {
		return wait()
	}
	return s.db.writeTx(ctx, func(context.Context, *sql.Tx) error {
		waitUntilNoted(s)
		return wait()
	})
}

// childHold reserves a path, prints the name of its lock, and waits until it is killed or its stdin is closed.
func childHold(ctx context.Context, place, id string) error {
	s, err := openPlace(ctx, place, Options{})
	if err != nil {
		return err
	}
	if taken, err := s.Ledger.Reserve(ctx, proposal(id, "checks/"+id+".md"), record.Claim{}); err != nil || taken != nil {
		return fmt.Errorf("taken by %v, %w", taken, err)
	}
	fmt.Println(s.Ledger.held.lockOf(id))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

var (
	_ prflow.Ledger    = (*Ledger)(nil)
	_ prflow.History   = (*History)(nil)
	_ access.Tokens    = (*Access)(nil)
	_ access.Logins    = (*Access)(nil)
	_ sessions.Records = (*AgentSessions)(nil)
	_ sessions.Journal = (*AgentSessions)(nil)
)
