package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestASuccessorTakesThePathsAtOnce(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), context.Background()
	if taken := reserve(t, s, proposal("1", "checks/a.md"), 0); taken != nil {
		t.Fatal(taken)
	}
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateUnsettled, Commit: "c0ffee"}), nil)
	left, err := s.History.Proposal(ctx, "1")
	wantEqual(t, err, nil)

	stale := left
	stale.State = record.StateReserved
	ok, err := s.Ledger.Supersede(ctx, stale, proposal("2", "checks/a.md"), attempt("1"))
	wantEqual(t, fmt.Sprint(ok, err), "false <nil>")
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 0)

	ok, err = s.Ledger.Supersede(ctx, left, proposal("2", "checks/a.md"), attempt("1"))
	wantEqual(t, fmt.Sprint(ok, err), "true <nil>")
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 1)
	former, err := s.History.Proposal(ctx, "1")
	wantEqual(t, err, nil)
	wantEqual(t, former.State, record.StateFailed)
	unfinished, err := s.History.Unfinished(ctx)
	wantEqual(t, err, nil)
	if len(unfinished) != 1 || unfinished[0].ID != "2" || unfinished[0].State != record.StateReserved ||
		unfinished[0].Abandoned {
		t.Errorf("unfinished: %+v", unfinished)
	}
	wantCode(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateCommitted}), fault.Conflict)
	wantEqual(t, s.Ledger.Advance(ctx, "2", record.Progress{State: record.StateCommitted}), nil)
	ok, err = s.Ledger.Supersede(ctx, left, proposal("3", "checks/a.md"), attempt("1"))
	wantEqual(t, fmt.Sprint(ok, err), "false <nil>")
}

func TestOneOfManySuccessorsTakesThePaths(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), context.Background()
	reserve(t, s, proposal("left", "checks/a.md"), 0)
	wantEqual(t, s.Ledger.Advance(ctx, "left", record.Progress{State: record.StateUnsettled}), nil)
	left, err := s.History.Proposal(ctx, "left")
	wantEqual(t, err, nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	took := 0
	for i := range 8 {
		all.Go(func() {
			ok, err := s.Ledger.Supersede(ctx, left, proposal(fmt.Sprint(i), "checks/a.md"), attempt("left"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if ok {
				took++
			}
		})
	}
	all.Wait()
	wantEqual(t, took, 1)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 1)
}

func TestWhatWeHaveBegunToUndoIsRemembered(t *testing.T) {
	t.Parallel()
	c := &clock{now: noon()}
	s, ctx := openWith(t, Options{Now: c.Now}), context.Background()
	p := proposal("1", "checks/a.md")
	reserve(t, s, p, 0)
	for _, id := range []string{"1", "none"} {
		undone, err := s.History.Undone(ctx, id)
		wantEqual(t, fmt.Sprint(undone, err), "false <nil>")
	}
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateCommitted, Undone: true}), nil)
	c.now = c.now.Add(time.Hour)
	wantEqual(t, s.Ledger.Advance(ctx, "1", record.Progress{State: record.StateUnsettled}), nil)
	finish(t, s, "1", record.Progress{State: record.StateFailed})
	undone, err := s.History.Undone(ctx, "1")
	wantEqual(t, fmt.Sprint(undone, err), "true <nil>")
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
