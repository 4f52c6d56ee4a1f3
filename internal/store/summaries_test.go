package store

import (
	"context"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/record"
)

func TestRefusalsAreCountedByGateFromATimeOn(t *testing.T) {
	s := openNew(t)
	recordVaried(t, s, 8) // refusals by scope: attempts 1, 3, 5 and 7
	for minute, want := range map[int]int{0: 4, 3: 3, 7: 1, 8: 0} {
		got, err := s.History.RefusalsByGate(context.Background(), noon().Add(time.Duration(minute)*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, g := range got {
			if g.Gate != record.GateScope {
				t.Errorf("gate %s", g.Gate)
			}
			total += g.Count
		}
		if total != want {
			t.Errorf("from minute %d: %d, want %d", minute, total, want)
		}
	}
}

func TestADryRunWaitsUntilItsChangeIsTakenUp(t *testing.T) {
	s, ctx := openNew(t), context.Background()
	dry := func(id, digest string, at time.Time) {
		p := proposal(id)
		p.State, p.Digest, p.CreatedAt = record.StateDryRun, digest, at
		if err := s.Ledger.Record(ctx, attempt(id), &p); err != nil {
			t.Fatal(err)
		}
	}
	dry("old", "d0", noon().Add(-time.Hour))
	dry("a", "d1", noon())
	dry("b", "d2", noon().Add(time.Minute))
	waiting := func() (ids string) {
		found, err := s.History.WaitingDryRuns(ctx, noon())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			ids += p.ID + " "
		}
		return ids
	}
	wantEqual(t, waiting(), "b a ")
	p := proposal("opened")
	p.Digest = "d1"
	reserve(t, s, p, 1000)
	wantEqual(t, waiting(), "b ")

	counts, err := s.History.ProposalCounts(ctx)
	if err != nil || counts[record.StateDryRun] != 3 || counts[record.StateReserved] != 1 {
		t.Errorf("%v %v", counts, err)
	}
	repos, err := s.History.Repositories(ctx)
	if err != nil || len(repos) != 1 || repos[0] != (record.RepoName{Provider: p.Provider, Owner: p.Owner, Name: p.Repo}) {
		t.Errorf("%v %v", repos, err)
	}
}
