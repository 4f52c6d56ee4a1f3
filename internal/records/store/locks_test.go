package store

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// abandoned lists the unfinished proposals and whether they are abandoned, as s hands them out.
func abandoned(t testing.TB, s *Store) map[string]bool {
	t.Helper()
	return abandonedBy(context.Background(), t, s)
}

func abandonedBy(ctx context.Context, t testing.TB, s *Store) map[string]bool {
	t.Helper()
	left := must.Get(s.History.Unfinished(ctx))(t)
	out := map[string]bool{}
	for _, p := range left {
		out[p.ID] = p.Abandoned
	}
	return out
}

// holder starts a process that reserves checks/<id>.md and stays; see childHold.
func holder(t testing.TB, place, id string) (cmd *exec.Cmd, name string) {
	t.Helper()
	cmd = child(t, "hold", place, id)
	out := must.Get(cmd.StdoutPipe())(t)
	if _, err := cmd.StdinPipe(); err != nil { // never written to: it keeps the child waiting
		t.Fatal(err)
	}
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the child ended by itself: %v", cmd.Wait())
	}
	return cmd, lines.Text()
}

func kill(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	must.Do(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("the child was not killed: %v", err)
	}
}

func TestTheProposalOfAKilledProcessIsAbandonedAtOnce(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s := open(t, place, Options{})
	first, firstName := holder(t, place, "first")
	second, _ := holder(t, place, "second")
	wantEqual(t, abandoned(t, s), map[string]bool{"first": false, "second": false})

	kill(t, first)
	waitUntilEnded(t, s, firstName)
	wantEqual(t, abandoned(t, s), map[string]bool{"first": true, "second": false})
	wantEqual(t, wantTaken(t, s, proposal("mine", "checks/first.md"), 0, "first").Abandoned, true)
	byDigest := must.Get(s.History.ByDigest(context.Background(), "d-first"))(t)
	byID := must.Get(s.History.Proposal(context.Background(), "first"))(t)
	wantEqual(t, []bool{byDigest[0].Abandoned, byID.Abandoned}, []bool{true, true})
	wantEqual(t, wantTaken(t, s, proposal("mine", "checks/second.md"), 0, "second").Abandoned, false)
	finish(t, s, "first", record.Progress{State: record.StateFailed})
	wantEqual(t, must.Get(s.History.Proposal(context.Background(), "first"))(t).Abandoned, false) // it is settled
	kill(t, second)
}

func TestWhatAStoreHoldsItselfIsNeverAbandoned(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	reserve(t, s, proposal("reserved", "checks/a.md"), 0)
	reserve(t, s, proposal("committed", "checks/b.md"), 0)
	reserve(t, s, proposal("unsettled", "checks/c.md"), 0)
	wantEqual(t, s.Ledger.Advance(ctx, "committed", record.Progress{State: record.StateCommitted}), nil)
	wantEqual(t, s.Ledger.Advance(ctx, "unsettled", record.Progress{State: record.StateUnsettled}), nil)
	wantEqual(t, abandoned(t, s), map[string]bool{"reserved": false, "committed": false, "unsettled": false})
}

func TestAStoreThatIsClosedLeavesItsProposalsAbandoned(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	for _, id := range []string{"reserved", "unsettled", "failed"} {
		reserve(t, other, proposal(id, "checks/"+id+".md"), 0)
	}
	wantEqual(t, other.Ledger.Advance(ctx, "unsettled", record.Progress{State: record.StateUnsettled}), nil)
	finish(t, other, "failed", record.Progress{State: record.StateFailed})
	names := []string{nameIn(t, s, "reserved"), nameIn(t, s, "unsettled")}
	wantEqual(t, abandoned(t, s), map[string]bool{"reserved": false, "unsettled": false})
	wantEqual(t, other.Close(), nil)
	for _, name := range names {
		waitUntilEnded(t, s, name)
	}
	wantEqual(t, abandoned(t, s), map[string]bool{"reserved": true, "unsettled": true})
	for _, p := range must.Get(s.db.proposals(ctx, "ORDER BY id"))(t) {
		wantEqual(t, p.Abandoned, p.ID != "failed") // that one is settled
	}
}

// nameIn is the name of the lock under which the proposal was made.
func nameIn(t testing.TB, s *Store, id string) (name string) {
	t.Helper()
	must.Do(t, readerOf(s).QueryRow("SELECT process FROM proposals WHERE id = $1", id).Scan(&name))
	return name
}

func TestAProposalOfAnUnknownProcessIsNotAbandoned(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	mustExec(t, raw(t, s), "UPDATE proposals SET process = ''")
	wantEqual(t, abandoned(t, s), map[string]bool{"1": false})
}

func TestEveryReservationHasALockOfItsOwn(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	names := map[string]bool{}
	for i := range 3 {
		s := open(t, place, Options{})
		for _, id := range []string{fmt.Sprint(i), fmt.Sprint(i, "b")} {
			reserve(t, s, proposal(id, "checks/"+id+".md"), 0)
			names[nameIn(t, s, id)] = true
		}
	}
	wantEqual(t, len(names), 6)
}

func TestWhoAdoptsHoldsANewLock(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateUnsettled}), nil)
	first := nameIn(t, s, "1")
	for _, adopter := range []*Store{s, other} { // who left it unsettled may adopt it, too
		wantEqual(t, must.Get(adopter.Ledger.Adopt(ctx, must.Get(adopter.History.Unfinished(ctx))(t)[0]))(t), true)
		wantEqual(t, nameIn(t, s, "1") == first, false)
		wantEqual(t, abandoned(t, s), map[string]bool{"1": false})
		wantEqual(t, abandoned(t, other), map[string]bool{"1": false})
		first = nameIn(t, s, "1")
	}
	wantCode(t, s.Ledger.Finish(ctx, "1", record.Progress{State: record.StateFailed}, attempt("1")), "conflict")
	finish(t, other, "1", record.Progress{State: record.StateFailed})
}

// A process that was cut off from the database counts as gone until it comes back.
func TestAProposalWhoseProcessCameBackIsLeftToIt(t *testing.T) {
	ctx, place := t.Context(), emptyPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	left := must.Get(other.History.Unfinished(ctx))(t)
	left[0].Abandoned = true // as it was seen a moment ago
	wantEqual(t, must.Get(other.Ledger.Adopt(ctx, left[0]))(t), false)
	wantEqual(t, must.Get(other.Ledger.Supersede(ctx, left[0], proposal("2", "checks/a.md"), attempt("1")))(t), false)
	finish(t, s, "1", opened(1))
}

func TestAReservationWhoseEndWentUnrecordedIsAbandoned(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, giveUp := range map[string]func(*Store) error{
		"when it could not be marked as unsettled": func(s *Store) error {
			return s.Ledger.Advance(cancelled(), "lost", record.Progress{State: record.StateUnsettled})
		},
		"when its failure could not be recorded": func(s *Store) error {
			return s.Ledger.Finish(cancelled(), "lost", record.Progress{State: record.StateFailed}, attempt("lost"))
		},
		"when its pull request could not be recorded": func(s *Store) error {
			return s.Ledger.Finish(cancelled(), "lost", record.Progress{State: record.StateOpened, PRNumber: 1}, attempt("lost"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := emptyPlace(t)
			s, other := open(t, place, Options{}), open(t, place, Options{})
			reserve(t, s, proposal("lost", "checks/lost.md"), 0)
			reserve(t, s, proposal("busy", "checks/busy.md"), 0)
			if giveUp(s) == nil {
				t.Fatal("the call did not fail")
			}
			waitUntilEnded(t, other, s.Ledger.held.lockOf("lost"))
			want := map[string]bool{"lost": true, "busy": false} // it still works on one
			wantEqual(t, abandoned(t, other), want)
			wantEqual(t, abandoned(t, s), want) // this process may settle it, too

			wantEqual(t, s.Ledger.Finish(ctx, "busy", record.Progress{State: record.StateFailed}, attempt("busy")), nil)
			reserve(t, s, proposal("next", "checks/next.md"), 0)
			wantEqual(t, abandoned(t, other), map[string]bool{"lost": true, "next": false})
		})
	}
}

func TestWhoGaveUpIsFencedOnceAnotherHasAdopted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	place := emptyPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("lost", "checks/lost.md"), 0)
	if s.Ledger.Advance(cancelled(), "lost", record.Progress{State: record.StateUnsettled}) == nil {
		t.Fatal("the call did not fail")
	}
	wantEqual(t, must.Get(other.Ledger.Adopt(ctx, must.Get(other.History.Unfinished(ctx))(t)[0]))(t), true)
	wantCode(t, s.Ledger.Advance(ctx, "lost", record.Progress{State: record.StateUnsettled}), "conflict")
}

func TestSixteenProcessesReserveTheSamePaths(t *testing.T) {
	t.Parallel()
	const rounds = 6
	place := emptyPlace(t)
	all := processes(t, "race", place, fmt.Sprint(rounds))
	s := open(t, place, Options{})
	for round := range rounds {
		if n := strings.Count(all, fmt.Sprintf("won %d\n", round)); n != 1 {
			t.Errorf("round %d was won %d times", round, n)
		}
	}
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM proposals"), rounds)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 2*rounds)
	if got := verify(t, s, ""); !got.OK() || got.Rows != 16*rounds {
		t.Fatalf("got %+v", got)
	}
}

func TestAKilledProcessLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	reported := 0
	for kill := range 5 {
		cmd := child(t, "finish-forever", place)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 3 + 7*kill {
			if !lines.Scan() {
				t.Fatal("the child ended by itself")
			}
			reported++
		}
		must.Do(t, cmd.Process.Kill())
		for lines.Scan() {
			reported++
		}
		_ = cmd.Wait()
		checkNothingHalfDone(t, place, reported)
	}
}

// checkNothingHalfDone holds that every opened proposal has its audit row and none of its paths, that every reserved
// one has both its paths and no audit row, and that nothing that was reported done is missing.
func checkNothingHalfDone(t *testing.T, place string, reported int) {
	t.Helper()
	s := open(t, place, Options{})
	wantEqual(t, s.Check(t.Context()), nil)
	report := verify(t, s, "")
	if !report.OK() || report.Rows < int64(reported) {
		t.Fatalf("%d were reported done, and the audit is %+v", reported, report)
	}
	opened := count(t, s, "SELECT COUNT(*) FROM proposals WHERE state = 'opened'")
	reserved := count(t, s, "SELECT COUNT(*) FROM proposals WHERE state = 'reserved'")
	wantEqual(t, int64(opened), report.Rows)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM proposals"), opened+reserved)
	wantEqual(t, count(t, s, `SELECT COUNT(*) FROM audit a JOIN proposals p
		ON p.id = a.request_id AND p.state = 'opened'`), opened)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM proposal_files"), 2*(opened+reserved))
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 2*reserved)
	wantEqual(t, count(t, s, `SELECT COUNT(*) FROM reservations r JOIN proposals p ON p.id = r.proposal_id
		WHERE p.state = 'reserved'`), 2*reserved)
	must.Do(t, s.Close())
}

func TestSixteenProcessesOpenAnEmptyPlaceAtOnce(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	processes(t, "race", place, "1")
	if got := verify(t, open(t, place, Options{}), ""); !got.OK() || got.Rows != 16 {
		t.Fatalf("got %+v", got)
	}
}
