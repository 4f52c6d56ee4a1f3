package store

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// sawPull records what a look at an open pull request found.
func sawPull(t testing.TB, s *Store, key record.PullKey, look func(*record.PullRecord)) {
	t.Helper()
	seen := recordOf(t, s, key)
	look(&seen)
	if ok, err := s.Pulls.SeePull(t.Context(), seen, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

func TestPullRequestsAreCountedAndFoundByWhoIsToAct(t *testing.T) {
	s := openNew(t)
	for number, look := range map[int]func(*record.PullRecord){
		1: func(*record.PullRecord) {},
		2: func(r *record.PullRecord) { r.Approvals, r.Checks = 1, gitprovider.ChecksSuccess },
		3: func(r *record.PullRecord) { r.Approvals, r.Checks = 1, gitprovider.ChecksFailure },
		4: func(r *record.PullRecord) { r.Checks = gitprovider.ChecksPending },
		5: func(r *record.PullRecord) { r.ChangesRequested, r.AskedAt, r.Checks = 1, noon(), gitprovider.ChecksFailure },
		6: func(r *record.PullRecord) { r.State = gitprovider.StateMerged },
		7: func(r *record.PullRecord) { r.State = gitprovider.StateClosed },
		8: func(r *record.PullRecord) { r.ChangesRequested, r.AskedAt = 1, noon().Add(-time.Hour) },
	} {
		sawPull(t, s, openedPull(t, s, number), look)
	}
	revise(t, s, 8)
	eighth := recordOf(t, s, record.PullKey{Provider: "local", Owner: "demo", Repo: "home-cluster", Number: 8})
	wantEqual(t, eighth.RevisedAt, noon())

	open := record.PullTotals{
		record.StandingReview: 2, record.StandingReady: 1, record.StandingFailed: 1, record.StandingRunning: 1, record.StandingAgent: 1,
	}
	totals, err := s.Pulls.PullTotals(t.Context(), false)
	wantEqual(t, err, nil)
	wantEqual(t, totals, open)
	wantEqual(t, totals.Waiting(), int64(5))
	open["merged"], open["closed"] = 1, 1
	totals, err = s.Pulls.PullTotals(t.Context(), true)
	wantEqual(t, err, nil)
	wantEqual(t, totals, open)

	for standing, want := range map[record.Standing]int{
		record.StandingWaiting: 5, record.StandingAgent: 1, record.StandingReview: 2, record.StandingReady: 1, "": 8,
	} {
		found := attempts(t, s, record.AttemptQuery{Standing: standing, Changes: true})
		wantEqual(t, len(found), want)
		for _, a := range found {
			number, err := strconv.Atoi(strings.TrimPrefix(a.RequestID, "p"))
			wantEqual(t, err, nil)
			is := recordOf(t, s, record.PullKey{Provider: "local", Owner: "demo", Repo: "home-cluster", Number: number}).Standing()
			if standing == record.StandingAgent && is != standing || standing == record.StandingWaiting && is == record.StandingAgent {
				t.Errorf("#%d stands %s, and is found as %s", number, is, standing)
			}
		}
	}
	wantEqual(t, len(attempts(t, s, record.AttemptQuery{})), 9)

	// Whoever asks again makes it the agent's turn.
	sawPull(t, s, eighth.PullKey, func(r *record.PullRecord) { r.AskedAt = noon().Add(time.Hour) })
	wantEqual(t, recordOf(t, s, eighth.PullKey).Standing(), record.StandingAgent)
}

// revise records one more commit on a pull request.
func revise(t testing.TB, s *Store, number int) {
	t.Helper()
	p := proposal("revision", "checks/more.md")
	p.Revises = number
	if taken := reserve(t, s, p, 1<<40); taken != nil {
		t.Fatalf("taken by %+v", taken)
	}
	a := attempt("revision")
	a.Outcome, a.PRNumber = record.OutcomeRevised, number
	to := record.Progress{State: record.StateOpened, Branch: "b", Commit: "beef", PRNumber: number, PRURL: "https://x"}
	wantEqual(t, s.Ledger.Finish(t.Context(), "revision", to, a), nil)
}

func TestTheAuditIsFilteredByWhatPeopleLookFor(t *testing.T) {
	s := openNew(t)
	row := func(id, action, caller string, door record.Door, number int) record.Attempt {
		a := attempt(id)
		a.Action, a.Caller, a.Door, a.PRNumber = action, caller, door, number
		return a
	}
	recordAttempts(t, s,
		row("1", record.ActionCreate, "watcher", record.DoorMCP, 41), row("2", "review.approve", "ben", record.DoorWeb, 41),
		row("3", record.ActionPromote, "ben", record.DoorCLI, 0), row("4", "token.create", "anna", record.DoorWeb, 0),
		row("5", "reviews", "anna", record.DoorREST, 3))
	for name, c := range map[string]struct {
		q    record.AuditQuery
		want string
	}{
		"of people's reviews":      {record.AuditQuery{Action: "review."}, "2"},
		"of proposals":             {record.AuditQuery{Action: record.ActionCreate}, "3 1"},
		"over the dashboard":       {record.AuditQuery{Door: record.DoorWeb}, "4 2"},
		"of one person, one way":   {record.AuditQuery{Door: record.DoorWeb, Caller: "anna"}, "4"},
		"of a pull request":        {record.AuditQuery{Number: 41}, "2 1"},
		"of a number of both":      {record.AuditQuery{Number: 3}, "5 3"},
		"of a number that no has":  {record.AuditQuery{Number: 99}, ""},
		"of an action of a person": {record.AuditQuery{Action: "token.create", Caller: "ben"}, ""},
	} {
		rows, err := s.Audit.Page(t.Context(), c.q)
		wantEqual(t, err, nil)
		if got := seqs(rows); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for limit, want := range map[int][]string{10: {"anna", "ben", "watcher"}, 2: {"anna", "ben"}} {
		callers, err := s.Audit.Callers(t.Context(), limit)
		wantEqual(t, err, nil)
		wantEqual(t, callers, want)
	}
}

func TestNobodyIsInAnEmptyAudit(t *testing.T) {
	callers, err := openNew(t).Audit.Callers(t.Context(), 10)
	wantEqual(t, err, nil)
	wantEqual(t, len(callers), 0)
}
