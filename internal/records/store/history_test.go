package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

func TestPositionGrowsWithEveryRecord(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	before, err := s.History.Position(ctx)
	wantEqual(t, err, nil)
	recordAttempts(t, s, attempt("1"))
	after, err := s.History.Position(ctx)
	wantEqual(t, err, nil)
	if after <= before {
		t.Fatalf("position %d after %d", after, before)
	}
}

func TestByDigestReturnsTheNewestFirstAndLiveReservationsToo(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	for i := range maxByDigest + 3 {
		id := fmt.Sprint(i)
		p := proposal(id, "checks/a.md")
		p.Digest, p.CreatedAt = "same", c.now
		reserve(t, s, p, 99)
		c.now = c.now.Add(time.Second)
		finish(t, s, id, opened(i+1))
	}
	reserve(t, s, proposal("reserved", "checks/b.md"), 99)
	got, err := s.History.ByDigest(context.Background(), "same")
	wantEqual(t, err, nil)
	if len(got) != maxByDigest || got[0].PRNumber != maxByDigest+3 || got[maxByDigest-1].PRNumber != 4 ||
		len(got[0].Files) != 1 {
		t.Fatalf("got %d, first %+v", len(got), got[0])
	}
	got, err = s.History.ByDigest(context.Background(), "d-reserved")
	wantEqual(t, err, nil)
	if len(got) != 1 || got[0].State != record.StateReserved {
		t.Fatalf("got %+v", got)
	}
	finish(t, s, "reserved", record.Progress{State: record.StateFailed})
	got, err = s.History.ByDigest(context.Background(), "d-reserved")
	wantEqual(t, err, nil)
	wantEqual(t, len(got), 0)
}

func TestUnfinishedListsWhatHoldsPathsOldestFirst(t *testing.T) {
	t.Parallel()
	c := &clock{now: noon()}
	ctx, s := context.Background(), openWith(t, Options{Now: c.Now})
	for i, id := range []string{"young", "old", "failed", "committed", "unsettled"} {
		p := proposal(id, "checks/"+id+".md", "checks/"+id+"-2.md")
		p.CreatedAt = time.Time{} // of the call, whatever it is
		c.now = noon().Add(time.Duration(i) * time.Second)
		if id == "young" {
			c.now = noon().Add(time.Hour)
		}
		reserve(t, s, p, 0)
	}
	wantEqual(t, s.Ledger.Advance(ctx, "committed", record.Progress{State: record.StateCommitted}), nil)
	wantEqual(t, s.Ledger.Advance(ctx, "unsettled", record.Progress{State: record.StateUnsettled}), nil)
	finish(t, s, "failed", record.Progress{State: record.StateFailed})
	left, err := s.History.Unfinished(ctx)
	wantEqual(t, err, nil)
	var ids []string
	for _, p := range left {
		ids = append(ids, fmt.Sprintf("%s %s %d", p.ID, p.State, len(p.Files)))
	}
	wantEqual(t, ids, []string{"old reserved 2", "committed committed 2", "unsettled unsettled 2", "young reserved 2"})
}

func TestPathsOfAPullRequest(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	reserve(t, s, proposal("1", "checks/b.md", "checks/Z.md", "checks/a.md"), 0)
	reserve(t, s, proposal("2", "checks/c.md"), 0)
	finish(t, s, "1", opened(1))
	finish(t, s, "2", record.Progress{State: record.StateFailed, PRNumber: 2})
	for number, want := range map[int][]string{1: {"checks/Z.md", "checks/a.md", "checks/b.md"}, 2: nil, 3: nil} {
		got, err := s.History.PathsOf(ctx, "local", "demo", "home-cluster", number)
		wantEqual(t, err, nil)
		wantEqual(t, got, want)
	}
	got, err := s.History.PathsOf(ctx, "local", "demo", "other", 1)
	wantEqual(t, err, nil)
	wantEqual(t, len(got), 0)
}
