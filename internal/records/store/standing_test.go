package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
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
	t.Parallel()
	s := openNew(t)
	for number, look := range map[int]func(*record.PullRecord){
		1: func(*record.PullRecord) {},
		2: func(r *record.PullRecord) { r.Approvals, r.Checks = 1, gitprovider.ChecksSuccess },
		3: func(r *record.PullRecord) { r.Approvals, r.Checks = 1, gitprovider.ChecksFailure },
		4: func(r *record.PullRecord) { r.Checks = gitprovider.ChecksPending },
		5: func(r *record.PullRecord) {
			r.ChangesRequested, r.AskedAt, r.Checks = 1, noon(), gitprovider.ChecksFailure
		},
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
		record.StandingReview: 2, record.StandingReady: 1, record.StandingFailed: 1, record.StandingRunning: 1,
		record.StandingAgent: 1,
	}
	totals, err := s.Pulls.PullTotals(t.Context(), false)
	wantEqual(t, err, nil)
	wantEqual(t, totals, open)
	wantEqual(t, totals.Waiting(), int64(5))
	found, err := s.Pulls.StandingPulls(t.Context(), []record.Standing{record.StandingReview, record.StandingReady}, 1)
	wantEqual(t, err, nil)
	wantEqual(t, len(found), 2)
	wantEqual(t, []int{found[0].Number, found[1].Number}, []int{1, 2})
	open["merged"], open["closed"] = 1, 1
	totals, err = s.Pulls.PullTotals(t.Context(), true)
	wantEqual(t, err, nil)
	wantEqual(t, totals, open)

	refused := attempt("refused") // as attempt is
	recordAttempts(t, s, refused)
	for _, id := range []string{"dry", "promoted"} {
		dry := proposal(id, "checks/"+id+".md")
		dry.Digest = id
		a := attempt(id)
		a.Outcome, a.Code = record.OutcomeDryRun, ""
		wantEqual(t, s.Ledger.Record(t.Context(), a, &dry), nil)
	}
	promoted := proposal("real", "checks/real.md")
	promoted.Digest = "promoted"
	if taken := reserve(t, s, promoted, 1<<40); taken != nil {
		t.Fatalf("taken by %+v", taken)
	}
	wantEqual(t, s.Ledger.Finish(t.Context(), "real", record.Progress{State: record.StateFailed}, failedAttempt("real")),
		nil)
	for tab, want := range map[record.Tab]string{
		record.TabWaiting: "promoted dry p8 p4 p3 p2 p1", record.TabAgent: "p5", record.TabRefused: "refused",
		record.TabMerged: "p6", record.TabClosed: "p7",
		"": "real promoted dry refused p8 p7 p6 p5 p4 p3 p2 p1",
	} {
		got := ids(attempts(t, s, record.AttemptQuery{Tab: tab, Changes: true}))
		if sorted(got) != sorted(want) {
			t.Errorf("%q: %s, want %s", tab, got, want)
		}
		counts, err := s.History.TabCounts(t.Context())
		wantEqual(t, err, nil)
		wantEqual(t, counts[tab], int64(len(strings.Fields(want))))
	}
	for _, search := range []string{"#8", "8"} {
		wantEqual(t, ids(attempts(t, s, record.AttemptQuery{Search: search})), "revision")
	}
	wantEqual(t, len(attempts(t, s, record.AttemptQuery{})), 13)

	// A new request for changes makes it the agent's turn.
	sawPull(t, s, eighth.PullKey, func(r *record.PullRecord) { r.AskedAt = noon().Add(time.Hour) })
	wantEqual(t, recordOf(t, s, eighth.PullKey).Standing(), record.StandingAgent)
}

// A change is one row and counts once, however many rows of the audit it has: a dry run that was opened, and a proposal
// that failed and was settled later.
func TestTheNumberOfATabIsHowManyRowsItHas(t *testing.T) {
	s := openNew(t)
	want := func(after, all string) {
		t.Helper()
		counts, err := s.History.TabCounts(t.Context())
		wantEqual(t, err, nil)
		rows := attempts(t, s, record.AttemptQuery{Changes: true})
		if got := ids(rows); got != all || counts[""] != int64(len(rows)) {
			t.Errorf("after %s: %s, and %d counted; want %s", after, got, counts[""], all)
		}
	}
	dry := proposal("dry", "checks/dry.md")
	dry.Digest = "same"
	a := attempt("dry")
	a.Outcome, a.Code, a.Verdicts = record.OutcomeDryRun, "", nil
	wantEqual(t, s.Ledger.Record(t.Context(), a, &dry), nil)
	want("a dry run", "dry")
	promoted := proposal("promoted", "checks/dry.md")
	promoted.Digest = "same"
	if taken := reserve(t, s, promoted, 1<<40); taken != nil {
		t.Fatalf("taken by %+v", taken)
	}
	a.RequestID, a.Action, a.Outcome, a.PRNumber = "promoted", record.ActionPromote, record.OutcomeOpened, 3
	wantEqual(t, s.Ledger.Finish(t.Context(), "promoted", record.Progress{State: record.StateOpened, PRNumber: 3}, a), nil)
	want("its promotion", "promoted")

	left := proposal("left", "checks/left.md")
	left.Digest = "left"
	if taken := reserve(t, s, left, 1<<40); taken != nil {
		t.Fatalf("taken by %+v", taken)
	}
	wantEqual(t, s.Ledger.Advance(t.Context(), "left", record.Progress{State: record.StateUnsettled}), nil)
	a = failedAttempt("left")
	recordAttempts(t, s, a)
	want("a proposal that is left unsettled", "left promoted")
	a.Action = record.ActionSettle
	recordAttempts(t, s, a)
	want("a look that settles nothing", "left promoted")
	a.Outcome, a.Code, a.PRNumber = record.OutcomeOpened, "", 4
	wantEqual(t, s.Ledger.Finish(t.Context(), "left", record.Progress{State: record.StateOpened, PRNumber: 4}, a), nil)
	want("what settled it", "left promoted")
}

func failedAttempt(id string) record.Attempt {
	a := attempt(id)
	a.Outcome, a.Code = record.OutcomeFailed, fault.UpstreamError
	return a
}

func ids(rows []record.RecordedAttempt) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.RequestID)
	}
	return strings.Join(out, " ")
}

func sorted(words string) string {
	list := strings.Fields(words)
	slices.Sort(list)
	return strings.Join(list, " ")
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
	t.Parallel()
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
	t.Parallel()
	callers, err := openNew(t).Audit.Callers(t.Context(), 10)
	wantEqual(t, err, nil)
	wantEqual(t, len(callers), 0)
}

func TestRefusalsAreCountedByTheirCodes(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for at, codes := range map[time.Duration][]fault.Code{
		-time.Hour:          {fault.DuplicatePR, fault.DuplicatePR, fault.ScopeDenied},
		-23 * time.Hour:     {fault.ScopeDenied, fault.ScopeDenied},
		-3 * 24 * time.Hour: {fault.CooldownActive}, -30 * time.Hour: {fault.TierDenied},
	} {
		for _, code := range codes {
			a := attempt(string(code))
			a.Time, a.Outcome, a.Code = noon().Add(at), record.OutcomeRefused, code
			recordAttempts(t, s, a)
		}
	}
	recordAttempts(t, s, failedAttempt("no refusal"))
	for since, want := range map[time.Duration][]record.CodeCount{
		-time.Hour:      {{Code: fault.DuplicatePR, Count: 2}, {Code: fault.ScopeDenied, Count: 1}},
		-24 * time.Hour: {{Code: fault.ScopeDenied, Count: 3}, {Code: fault.DuplicatePR, Count: 2}},
		-7 * 24 * time.Hour: {{Code: fault.ScopeDenied, Count: 3}, {Code: fault.DuplicatePR, Count: 2},
			{Code: fault.CooldownActive, Count: 1}, {Code: fault.TierDenied, Count: 1}},
	} {
		got, err := s.History.RefusalsByCode(t.Context(), noon().Add(since))
		wantEqual(t, err, nil)
		wantEqual(t, got, want)
	}
}

func TestSessionsThatEndedBadlyAreCountedAndListed(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for id, state := range map[string]sessions.State{"1": sessions.StateSucceeded, "2": sessions.StateLimit,
		"3": sessions.StateFailed, "4": sessions.StateCancelled} {
		r := sessions.Record{ID: id, StartedAt: noon(), Ending: sessions.Ending{State: state}}
		wantEqual(t, s.AgentSessions.BeginSession(t.Context(), r), nil)
	}
	old := sessions.Record{ID: "0", StartedAt: noon().AddDate(0, 0, -9),
		Ending: sessions.Ending{State: sessions.StateFailed}}
	wantEqual(t, s.AgentSessions.BeginSession(t.Context(), old), nil)
	counts, err := s.AgentSessions.Endings(t.Context(), noon().AddDate(0, 0, -6))
	wantEqual(t, err, nil)
	wantEqual(t, counts, map[sessions.State]int{sessions.StateSucceeded: 1, sessions.StateLimit: 1,
		sessions.StateFailed: 1, sessions.StateCancelled: 1})
	bad, err := s.AgentSessions.Sessions(t.Context(), sessions.Query{Bad: true})
	wantEqual(t, err, nil)
	var ids []string
	for _, r := range bad {
		wantEqual(t, r.State.Bad(), true)
		ids = append(ids, r.ID)
	}
	wantEqual(t, ids, []string{"3", "2", "0"})
}
