package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func opened(number int) record.Progress {
	return record.Progress{State: record.StateOpened, Branch: "claude-ops/check/watch-the-disk", Commit: "c0ffee",
		PRNumber: number, PRURL: fmt.Sprintf("https://git.example.org/demo/home-cluster/pulls/%d", number)}
}

func finish(t testing.TB, s *Store, id string, to record.Progress) {
	t.Helper()
	must.Do(t, s.Ledger.Finish(context.Background(), id, to, attempt(id)))
}

func TestAProposalIsKeptAsItWas(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	want := proposal("1", "checks/b.md", "checks/a.md")
	want.Caller = "evil\x00\xff\\client"
	want.Files[1] = gitprovider.FileChange{Path: "checks/b.md", Action: gitprovider.ActionDelete}
	wantFree(t, s, want, 0)
	got := must.Get(s.History.Proposal(context.Background(), "1"))(t)
	want.Holder = got.Holder // the store's to set
	wantEqual(t, got, want)

	_, err := s.History.Proposal(context.Background(), "2")
	wantCode(t, err, fault.NotFound)
}

// What a call does before it holds its paths, such as settling what others left, may take long.
func TestAProposalIsDatedByItsReservation(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	first, next := proposal("first", "checks/a.md"), proposal("next", "checks/a.md")
	c.now = c.now.Add(time.Minute)
	reserve(t, s, first, 0)
	c.now = c.now.Add(time.Minute)
	left := must.Get(s.History.Proposal(t.Context(), "first"))(t)
	wantEqual(t, must.Get(s.Ledger.Supersede(t.Context(), left, next, attempt("1")))(t), true)
	for id, want := range map[string]time.Time{"first": noon().Add(time.Minute), "next": noon().Add(2 * time.Minute)} {
		wantEqual(t, must.Get(s.History.Proposal(t.Context(), id))(t).CreatedAt.UTC(), want)
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	first := proposal("1", "checks/a.md", "checks/b.md")
	tests := map[string]struct {
		settle []record.Progress      // what happens to the first proposal before the second
		change func(*record.Proposal) // what is special about the second
		paths  []string
		seen   record.Position
		taken  bool
	}{
		"another path of the same repository is free": {paths: []string{"checks/c.md"}, seen: 0},
		"a reserved path is taken": {paths: []string{"checks/b.md", "checks/c.md"}, seen: 99,
			taken: true},
		"the same path of another repository is free": {paths: []string{"checks/a.md"}, seen: 0,
			change: func(p *record.Proposal) { p.Repo = "other" }},
		"the same path of another owner is free": {paths: []string{"checks/a.md"}, seen: 0,
			change: func(p *record.Proposal) { p.Owner = "other" }},
		"the same path at another provider is free": {paths: []string{"checks/a.md"}, seen: 0,
			change: func(p *record.Proposal) { p.Provider = "gitea" }},
		"another base of the same repository is taken": {paths: []string{"checks/a.md"}, seen: 99, taken: true,
			change: func(p *record.Proposal) { p.Base = "release" }},
		"a committed proposal still holds its paths": {paths: []string{"checks/a.md"}, seen: 99, taken: true,
			settle: []record.Progress{{State: record.StateCommitted}}},
		"an unsettled proposal still holds its paths": {paths: []string{"checks/a.md"}, seen: 99, taken: true,
			settle: []record.Progress{{State: record.StateUnsettled}}},
		"an unsettled proposal that is settled frees its paths": {paths: []string{"checks/a.md"}, seen: 0,
			settle: []record.Progress{{State: record.StateUnsettled}, {State: record.StateFailed}}},
		"a failed proposal frees its paths": {paths: []string{"checks/a.md"}, seen: 0,
			settle: []record.Progress{{State: record.StateFailed}}},
		"a proposal opened after the caller looked is returned": {paths: []string{"checks/a.md"}, seen: 0, taken: true,
			settle: []record.Progress{opened(7)}},
		"a proposal opened before the caller looked is the provider's matter": {paths: []string{"checks/a.md"}, seen: 1,
			settle: []record.Progress{opened(7)}},
		"a proposal opened on other paths after the caller looked does not matter": {paths: []string{"checks/c.md"},
			seen: 0, settle: []record.Progress{opened(7)}},
		"a proposal opened elsewhere after the caller looked does not matter": {paths: []string{"checks/a.md"}, seen: 0,
			settle: []record.Progress{opened(7)},
			change: func(p *record.Proposal) { p.Repo = "other" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			wantFree(t, s, first, 0)
			for _, to := range test.settle {
				if to.State == record.StateOpened || to.State == record.StateFailed {
					finish(t, s, "1", to)
				} else {
					advance(t, s, "1", to)
				}
			}
			second := proposal("2", test.paths...)
			if test.change != nil {
				test.change(&second)
			}
			taken := reserve(t, s, second, test.seen)
			if (taken != nil) != test.taken {
				t.Fatalf("taken: %+v", taken)
			}
			recorded := count(t, s, "SELECT COUNT(*) FROM proposals WHERE id = '2'")
			held := count(t, s, "SELECT COUNT(*) FROM reservations WHERE proposal_id = '2'")
			if !test.taken {
				wantEqual(t, []int{recorded, held}, []int{1, len(test.paths)})
				return
			}
			wantEqual(t, []int{recorded, held}, []int{0, 0})
			wantEqual(t, *taken, must.Get(s.History.Proposal(context.Background(), "1"))(t))
		})
	}
}

func TestPathsThatDifferInLetterCaseAreOneForReservations(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	reserve(t, s, proposal("1", "checks/A.md"), 0)
	wantTaken(t, s, proposal("2", "checks/a.md"), 0, "1")
	finish(t, s, "1", opened(1))
	wantTaken(t, s, proposal("3", "CHECKS/a.md"), 0, "1")
}

func TestOnlyOneAdoptsWhatWasLeftAndTheFormerHolderIsFenced(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	former, first, second := open(t, place, Options{}), open(t, place, Options{}), open(t, place, Options{})
	reserve(t, former, proposal("1", "checks/a.md"), 0)
	wantEqual(t, former.Ledger.Advance(ctx, "1", record.Progress{State: record.StateUnsettled, Commit: "c1"}), nil)
	left := must.Get(first.History.Proposal(ctx, "1"))(t)
	if left.Holder == "" || left.Abandoned {
		t.Fatalf("handed out: %+v", left)
	}
	for i, want := range []bool{true, false} {
		s := []*Store{first, second}[i]
		ok, err := s.Ledger.Adopt(ctx, left)
		if err != nil || ok != want {
			t.Fatalf("adoption %d: %t, %v", i, ok, err)
		}
	}
	adopted := must.Get(second.History.Proposal(ctx, "1"))(t)
	if adopted.Holder == left.Holder || adopted.State != record.StateCommitted {
		t.Fatalf("adopted: %+v", adopted)
	}
	wantCode(t, former.Ledger.Finish(ctx, "1", opened(1), attempt("1")), fault.Conflict)
	wantCode(t, former.Ledger.Advance(ctx, "1", record.Progress{State: record.StateCommitted}), fault.Conflict)
	wantEqual(t, first.Ledger.Finish(ctx, "1", record.Progress{State: record.StateFailed}, attempt("1")), nil)
	ok, err := second.Ledger.Adopt(ctx, adopted)
	if err != nil || ok {
		t.Fatalf("what has ended was adopted: %t, %v", ok, err)
	}
}

func TestReserveOfARecordedRequestIDFails(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	_, err := s.Ledger.Reserve(context.Background(), proposal("1", "checks/b.md"), record.Claim{})
	wantCode(t, err, fault.Internal)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 1)
}

func TestAdvanceAndFinishKeepWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	steps := []record.Progress{
		{State: record.StateReserved, Branch: "claude-ops/check/x"},
		{State: record.StateCommitted, Commit: "c0ffee"},
	}
	for _, step := range steps {
		wantEqual(t, s.Ledger.Advance(ctx, "1", step), nil)
	}
	finish(t, s, "1", record.Progress{State: record.StateOpened, PRNumber: 3, PRURL: "u"})
	wantEqual(t, must.Get(s.History.Proposal(ctx, "1"))(t).Progress, record.Progress{
		State: record.StateOpened, Branch: "claude-ops/check/x", Commit: "c0ffee", PRNumber: 3, PRURL: "u",
	})
}

func TestFinishReleasesPathsAndRecordsTheAttempt(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	reserve(t, s, proposal("1", "checks/a.md", "checks/b.md"), 0)
	reserve(t, s, proposal("2", "checks/c.md"), 0)
	finish(t, s, "1", opened(1))
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 1)
	wantEqual(t, must.Get(s.Audit.Entry(context.Background(), "1"))(t).Attempt, attempt("1"))
}

func TestSettledProposalsAreLeftAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, prepare := range map[string]func(t *testing.T, s *Store){
		"opened": func(t *testing.T, s *Store) {
			reserve(t, s, proposal("1", "checks/a.md"), 0)
			finish(t, s, "1", opened(1))
		},
		"failed": func(t *testing.T, s *Store) {
			reserve(t, s, proposal("1", "checks/a.md"), 0)
			finish(t, s, "1", record.Progress{State: record.StateFailed})
		},
		"a dry run": func(t *testing.T, s *Store) {
			p := proposal("1", "checks/a.md")
			wantEqual(t, s.Ledger.Record(ctx, attempt("1"), &p), nil)
		},
		"unknown": func(*testing.T, *Store) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			prepare(t, s)
			rows := verify(t, s, "").Rows
			was, _ := s.History.Proposal(ctx, "1")
			wantCode(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateCommitted, Branch: "b"}), fault.Conflict)
			wantCode(t, s.Ledger.Finish(ctx, "1", opened(9), attempt("1")), fault.Conflict)
			is, _ := s.History.Proposal(ctx, "1")
			wantEqual(t, is, was)
			wantEqual(t, verify(t, s, "").Rows, rows)
		})
	}
}

func TestStatesThatAStepCannotReachAreRefused(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	for _, state := range []record.ProposalState{"", record.StateOpened, record.StateFailed, record.StateDryRun} {
		wantCode(t, s.Ledger.Advance(ctx, "1", record.Progress{State: state}), fault.Internal)
	}
	for _, state := range []record.ProposalState{
		"", record.StateReserved, record.StateCommitted, record.StateUnsettled, record.StateDryRun,
	} {
		wantCode(t, s.Ledger.Finish(ctx, "1", record.Progress{State: state}, attempt("1")), fault.Internal)
	}
}

func TestRecordOfADryRunKeepsItsProposal(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	p := proposal("1", "checks/a.md")
	wantEqual(t, s.Ledger.Record(ctx, attempt("1"), &p), nil)
	p.State = record.StateDryRun
	wantEqual(t, must.Get(s.History.Proposal(ctx, "1"))(t), p)
	wantFree(t, s, proposal("2", "checks/a.md"), 0)

	wantCode(t, s.Ledger.Record(ctx, attempt("1"), &p), fault.Internal) // the id is taken
	wantEqual(t, verify(t, s, "").Rows, int64(1))
}

func TestASuccessorTakesThePathsAtOnce(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), context.Background()
	wantFree(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateUnsettled, Commit: "c0ffee"}), nil)
	left := must.Get(s.History.Proposal(ctx, "1"))(t)

	stale := left
	stale.State = record.StateReserved
	wantEqual(t, must.Get(s.Ledger.Supersede(ctx, stale, proposal("2", "checks/a.md"), attempt("1")))(t), false)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 0)

	wantEqual(t, must.Get(s.Ledger.Supersede(ctx, left, proposal("2", "checks/a.md"), attempt("1")))(t), true)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 1)
	wantEqual(t, must.Get(s.History.Proposal(ctx, "1"))(t).State, record.StateFailed)
	unfinished := must.Get(s.History.Unfinished(ctx))(t)
	if len(unfinished) != 1 || unfinished[0].ID != "2" || unfinished[0].State != record.StateReserved ||
		unfinished[0].Abandoned {
		t.Errorf("unfinished: %+v", unfinished)
	}
	wantCode(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateCommitted}), fault.Conflict)
	wantEqual(t, s.Ledger.Advance(ctx, "2", record.Progress{State: record.StateCommitted}), nil)
	wantEqual(t, must.Get(s.Ledger.Supersede(ctx, left, proposal("3", "checks/a.md"), attempt("1")))(t), false)
}

func TestOneOfManySuccessorsTakesThePaths(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), context.Background()
	reserve(t, s, proposal("left", "checks/a.md"), 0)
	wantEqual(t, s.Ledger.Advance(ctx, "left", record.Progress{State: record.StateUnsettled}), nil)
	left := must.Get(s.History.Proposal(ctx, "left"))(t)
	wantEqual(t, together(t, 8, func(i int) (bool, error) {
		return s.Ledger.Supersede(ctx, left, proposal(fmt.Sprint(i), "checks/a.md"), attempt("left"))
	}), int64(1))
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 1)
}

func TestWhatWeHaveBegunToUndoIsRemembered(t *testing.T) {
	t.Parallel()
	c := &clock{now: noon()}
	s, ctx := openWith(t, Options{Now: c.Now}), context.Background()
	p := proposal("1", "checks/a.md")
	reserve(t, s, p, 0)
	for _, id := range []string{"1", "none"} {
		wantEqual(t, must.Get(s.History.Undone(ctx, id))(t), false)
	}
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateCommitted, Undone: true}), nil)
	c.now = c.now.Add(time.Hour)
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateUnsettled}), nil)
	finish(t, s, "1", record.Progress{State: record.StateFailed})
	wantEqual(t, must.Get(s.History.Undone(ctx, "1"))(t), true)
	for _, row := range []struct {
		repo  string
		since time.Time
		want  string
	}{
		{p.Repo, noon(), fmt.Sprintf("[%s] <nil>", p.Branch)}, {p.Repo, noon().Add(time.Second), "[] <nil>"},
		{"other", noon(), "[] <nil>"},
	} {
		branches, err := s.History.UndoneBranches(ctx, p.Provider, p.Owner, row.repo, row.since)
		wantEqual(t, fmt.Sprint(branches, err), row.want)
	}
}

// A proposal that only answers has no files: it holds the pull request, and keeps what it answers.
func TestAnswersAreKeptAndHoldTheirPullRequest(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	answering := func(id string) record.Proposal {
		p := proposal(id)
		p.Revises = 7
		p.Answers = []record.ReviewAnswer{{Text: "So \\ \"x\".\n"}, {Text: "Daily.", Comment: "1.2", Path: "checks/a.md",
			Line: 3, Quote: "checks/a.md:3: How often?"}}
		return p
	}
	wantFree(t, s, answering("one"), 0)
	wantTaken(t, s, answering("two"), 0, "one")
	revision := proposal("three", "checks/a.md")
	revision.Revises = 7
	wantTaken(t, s, revision, 0, "one")
	wantEqual(t, must.Get(s.History.Proposal(ctx, "one"))(t).Answers, answering("one").Answers)
	wantEqual(t, s.Ledger.Finish(ctx, "one", record.Progress{State: record.StateOpened, PRNumber: 7}, attempt("one")), nil)
	wantTaken(t, s, answering("four"), 0, "one") // its caller has not seen the answer
}
