package store

import (
	"context"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

func TestAttemptsAreCountedByDay(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), context.Background()
	for day := range 3 {
		for range day + 1 {
			a := attempt("refused")
			a.Time = noon().AddDate(0, 0, day)
			wantEqual(t, s.Ledger.Record(ctx, a, nil), nil)
		}
		a := attempt("other")
		a.Time, a.Outcome, a.Verdicts = noon().AddDate(0, 0, day), record.OutcomeReused, nil
		wantEqual(t, s.Ledger.Record(ctx, a, nil), nil)
	}
	for since, want := range map[int]int{-1: 6, 0: 6, 1: 5, 2: 3, 3: 0} {
		got, err := s.History.RefusalsByGate(ctx, noon().AddDate(0, 0, since))
		wantEqual(t, err, nil)
		total := 0
		for _, g := range got {
			wantEqual(t, g.Gate, record.GateScope)
			total += g.Count
		}
		wantEqual(t, total, want)
	}
	got, err := s.History.OutcomesByDay(ctx, noon().AddDate(0, 0, 1).Add(11*time.Hour))
	wantEqual(t, err, nil)
	day := noon().Truncate(24*time.Hour).AddDate(0, 0, 1)
	wantEqual(t, got, []record.OutcomeCount{
		{Day: day, Outcome: record.OutcomeRefused, Count: 2}, {Day: day, Outcome: record.OutcomeReused, Count: 1},
		{Day: day.AddDate(0, 0, 1), Outcome: record.OutcomeRefused, Count: 3},
		{Day: day.AddDate(0, 0, 1), Outcome: record.OutcomeReused, Count: 1},
	})
}

// A search finds parts of any length, whatever they hold, and only rows that the other filters let through.
func TestASearchFindsPartsOfTitlesAndPaths(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), context.Background()
	for i, title := range []string{`100% "full" disk`, "a_b größer", "disk * OR AND NOT", "Disk NEAR(x)"} {
		a := attempt(string(rune('a' + i)))
		a.Title, a.Paths = title, []string{"checks/" + string(rune('a'+i)) + ".md"}
		wantEqual(t, s.Ledger.Record(ctx, a, nil), nil)
	}
	for part, want := range map[string]string{
		"disk": "dca", "DISK": "dca", `"full"`: "a", "0% ": "a", "a_b": "b", "ößer": "b", "größer c": "", "k * or": "c",
		"near(": "d", "checks/c": "c",
		"": "dcba", "d": "dcba", "zz": "", "zzz": "", `"`: "dcba", `"""`: "", "_": "b", "%": "a", "s/d.md": "d",
	} {
		q := record.AttemptQuery{Search: part}
		rows, err := s.History.Attempts(ctx, q)
		wantEqual(t, err, nil)
		got := ""
		for _, r := range rows {
			got += r.RequestID
		}
		if got != want {
			t.Errorf("%q: %q, want %q", part, got, want)
		}
		if len(rows) < 2 {
			continue
		}
		q.Limit, q.Before = 1, rows[0].Seq
		next, err := s.History.Attempts(ctx, q)
		wantEqual(t, err, nil)
		wantEqual(t, next[0].RequestID, want[1:2])
		q.Gate, q.Repo, q.Outcome = record.GateScope, rows[0].Owner+"/"+rows[0].Repo, rows[0].Outcome
		next, err = s.History.Attempts(ctx, q)
		wantEqual(t, err, nil)
		wantEqual(t, next[0].RequestID, want[1:2])
		q.Repo = "nobody/nothing"
		next, err = s.History.Attempts(ctx, q)
		wantEqual(t, err, nil)
		wantEqual(t, len(next), 0)
	}
}

func TestADryRunWaitsUntilItsChangeIsTakenUp(t *testing.T) {
	t.Parallel()
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

	for provider, want := range map[string]bool{p.Provider: true, "gitea": false} {
		used, err := s.History.Proposed(ctx, provider)
		wantEqual(t, err, nil)
		wantEqual(t, used, want)
	}
	repos, err := s.History.Repositories(ctx)
	if err != nil || len(repos) != 1 || repos[0] != (record.RepoName{Provider: p.Provider, Owner: p.Owner, Name: p.Repo}) {
		t.Errorf("%v %v", repos, err)
	}
}
