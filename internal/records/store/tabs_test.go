package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// sawPull records what a look at an open pull request found.
func sawPull(t testing.TB, s *Store, key record.PullKey, look func(*record.PullRecord)) {
	t.Helper()
	seen := recordOf(t, s, key)
	look(&seen)
	wantEqual(t, must.Get(s.Pulls.SeePull(t.Context(), seen, nil))(t), true)
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
	eighth := recordOf(t, s, pullKey(8))
	wantEqual(t, eighth.RevisedAt, noon())

	open := record.PullTotals{
		record.StandingReview: 2, record.StandingReady: 1, record.StandingFailed: 1, record.StandingRunning: 1,
		record.StandingAgent: 1,
	}
	totals := must.Get(s.Pulls.PullTotals(t.Context(), false))(t)
	wantEqual(t, totals, open)
	wantEqual(t, totals.Waiting(), int64(5))
	found, err := s.Pulls.StandingPulls(t.Context(), []record.NextActor{record.StandingReview, record.StandingReady}, 1)
	wantEqual(t, err, nil)
	wantEqual(t, len(found), 2)
	wantEqual(t, []int{found[0].Number, found[1].Number}, []int{1, 2})
	open["merged"], open["closed"] = 1, 1
	wantEqual(t, must.Get(s.Pulls.PullTotals(t.Context(), true))(t), open)

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
	wantFree(t, s, promoted, 1<<40)
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
		wantEqual(t, must.Get(s.History.FrameCounts(t.Context()))(t).Tabs[tab], int64(len(strings.Fields(want))))
	}
	for _, search := range []string{"#8", "8"} {
		wantEqual(t, ids(attempts(t, s, record.AttemptQuery{Search: search})), "revision")
	}
	wantEqual(t, len(attempts(t, s, record.AttemptQuery{})), 13)

	// A new request for changes makes it the agent's turn.
	sawPull(t, s, eighth.PullKey, func(r *record.PullRecord) { r.AskedAt = noon().Add(time.Hour) })
	wantEqual(t, recordOf(t, s, eighth.PullKey).NextActor(), record.StandingAgent)
}

// A change is one row and counts once, however many rows of the audit it has: a dry run that was opened, and a proposal
// that failed and was settled later.
func TestTheNumberOfATabIsHowManyRowsItHas(t *testing.T) {
	s := openNew(t)
	want := func(after, all string) {
		t.Helper()
		counts := must.Get(s.History.FrameCounts(t.Context()))(t)
		rows := attempts(t, s, record.AttemptQuery{Changes: true})
		if got := ids(rows); got != all || counts.Tabs[""] != int64(len(rows)) {
			t.Errorf("after %s: %s, and %d counted; want %s", after, got, counts.Tabs[""], all)
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
	wantFree(t, s, promoted, 1<<40)
	a.RequestID, a.Action, a.Outcome, a.PRNumber = "promoted", record.ActionPromote, record.OutcomeOpened, 3
	wantEqual(t, s.Ledger.Finish(t.Context(), "promoted", record.Progress{State: record.StateOpened, PRNumber: 3}, a), nil)
	want("its promotion", "promoted")

	left := proposal("left", "checks/left.md")
	left.Digest = "left"
	wantFree(t, s, left, 1<<40)
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
	return strings.Join(each(rows, func(r record.RecordedAttempt) string { return r.RequestID }), " ")
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
	wantFree(t, s, p, 1<<40)
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
		rows := must.Get(s.Audit.Page(t.Context(), c.q))(t)
		if got := seqs(rows); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for limit, want := range map[int][]string{10: {"anna", "ben", "watcher"}, 2: {"anna", "ben"}} {
		wantEqual(t, must.Get(s.Audit.Callers(t.Context(), limit))(t), want)
	}
}

func TestNobodyIsInAnEmptyAudit(t *testing.T) {
	t.Parallel()
	wantEqual(t, len(must.Get(openNew(t).Audit.Callers(t.Context(), 10))(t)), 0)
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
		wantEqual(t, must.Get(s.History.RefusalsByCode(t.Context(), noon().Add(since)))(t), want)
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
	counts := must.Get(s.AgentSessions.Endings(t.Context(), noon().AddDate(0, 0, -6)))(t)
	wantEqual(t, counts, map[sessions.State]int{sessions.StateSucceeded: 1, sessions.StateLimit: 1,
		sessions.StateFailed: 1, sessions.StateCancelled: 1})
	bad := must.Get(s.AgentSessions.Sessions(t.Context(), sessions.Query{Bad: true}))(t)
	var ids []string
	for _, r := range bad {
		wantEqual(t, r.State.Bad(), true)
		ids = append(ids, r.ID)
	}
	wantEqual(t, ids, []string{"3", "2", "0"})
}

func TestOpenPullRequestsAreCountedByRepositoryAndAge(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	const day = 24 * time.Hour
	number := 0
	open := func(repo string) {
		t.Helper()
		number++
		id := fmt.Sprintf("n%d", number)
		p := proposal(id, "checks/"+id+".md")
		p.Repo, p.CreatedAt = repo, c.now
		reserve(t, s, p, 1<<40)
		finish(t, s, id, opened(number))
	}
	open("old")
	open("both")
	c.now = c.now.Add(25 * day)
	open("both")
	c.now = c.now.Add(8 * day)
	open("both")
	open("both")
	c.now = c.now.Add(2 * day)
	open("new")
	repo := func(name string) record.RepoName {
		return record.RepoName{Provider: "local", Owner: "demo", Name: name}
	}
	most, rest, err := s.Pulls.OpenPullCounts(t.Context(), 2)
	wantEqual(t, err, nil)
	wantEqual(t, most, []record.OpenPulls{{RepoName: repo("both"), Week: 2, Month: 1, Older: 1},
		{RepoName: repo("new"), Day: 1}})
	wantEqual(t, rest, record.OpenPulls{Older: 1})
	outcomes, gates, err := s.History.Totals(t.Context())
	wantEqual(t, err, nil)
	wantEqual(t, outcomes, []record.OutcomeTotal{{Outcome: record.OutcomeRefused, Count: 6}})
	wantEqual(t, len(gates), 1)
}

// recounted is a place at which one random thing after the other is recorded, by two processes.
type recounted struct {
	*testing.T
	*rand.Rand
	place  string
	clock  *clock
	stores [2]*Store
	pulls  []record.PullKey
	left   []string // proposals whose outcome is not known
	n      int
}

// newRecounted makes a place with two processes, which end with the test.
func newRecounted(t *testing.T, seed, stream uint64) *recounted {
	t.Helper()
	r := &recounted{T: t, Rand: rand.New(rand.NewPCG(seed, stream)), place: emptyPlace(t), clock: &clock{noon()}}
	r.restart(0)
	r.restart(1)
	t.Cleanup(func() {
		for _, s := range r.stores {
			wantEqual(t, s.Close(), nil)
		}
	})
	return r
}

func (r *recounted) restart(i int) {
	if s := r.stores[i]; s != nil {
		wantEqual(r.T, s.Close(), nil)
	}
	r.stores[i] = must.Get(openPlace(context.Background(), r.place, Options{Now: r.clock.Now}))(r.T)
}

// change records something, and says what.
func (r *recounted) change() string {
	r.n++
	s, id := r.stores[r.IntN(2)], fmt.Sprintf("id-%04d", r.n)
	switch kind := r.IntN(12); kind {
	case 0, 1, 2:
		a := attempt(id)
		a.Time = r.clock.now.Add(-time.Duration(r.IntN(30*60)) * time.Minute)
		a.Code = []fault.Code{fault.ScopeDenied, fault.TierDenied, fault.DuplicatePR}[r.IntN(3)]
		recordAttempts(r.T, s, a)
		return "a refusal"
	case 3, 4:
		p, a := proposal(id), attempt(id)
		p.Digest, p.CreatedAt = fmt.Sprint("d", r.IntN(6)), r.clock.now.Add(-time.Duration(r.IntN(40*24))*time.Hour)
		a.Outcome, a.Code, a.Verdicts, a.Time = record.OutcomeDryRun, "", nil, p.CreatedAt
		wantEqual(r.T, s.Ledger.Record(r.Context(), a, &p), nil)
		return "a dry run"
	case 5, 6:
		return r.propose(s, id)
	case 7, 8, 9:
		return r.look(s)
	case 10:
		r.clock.now = r.clock.now.Add(time.Duration(r.IntN(10)) * 24 * time.Hour / 4)
		must.Get(s.Retention.Prune(r.Context(), r.clock.now.AddDate(0, 0, -20),
			func([]record.Pruned) record.Attempt { return record.Attempt{Action: "prune"} }))(r.T)
		return "time and retention"
	}
	if r.IntN(2) == 0 {
		r.restart(r.IntN(2))
		return "a restart"
	}
	for _, table := range []string{"proposals", "pulls"} { // as adoption by a root does
		wantEqual(r.T, s.db.exec(r.Context(), "UPDATE "+table+" SET provider = 'local:other' WHERE provider = 'local' AND "+
			map[string]string{"proposals": "id", "pulls": "proposal_id"}[table]+" LIKE $1",
			fmt.Sprintf("%%%d", r.IntN(10))), nil)
	}
	return "an adoption"
}

// propose records a proposal that is opened or fails, or is left.
func (r *recounted) propose(s *Store, id string) string {
	p, a := proposal(id), attempt(id)
	p.Digest = fmt.Sprint("d", r.IntN(6))
	wantFree(r.T, s, p, 1<<40)
	a.Code, a.Verdicts, a.Time = "", nil, r.clock.now
	switch r.IntN(6) {
	case 4:
		wantEqual(r.T, s.Ledger.Advance(r.Context(), id, record.Progress{State: record.StateUnsettled}), nil)
		a.Outcome, a.Code = record.OutcomeFailed, fault.UpstreamError
		recordAttempts(r.T, s, a)
		r.left = append(r.left, id)
		return "a proposal that is left"
	case 5:
		return r.settle(s, id)
	case 0:
		a.Outcome, a.Code = record.OutcomeFailed, fault.UpstreamError
		wantEqual(r.T, s.Ledger.Finish(r.Context(), id, record.Progress{State: record.StateFailed}, a), nil)
		return "a failure"
	case 1:
		return "a reservation"
	}
	a.Outcome, a.PRNumber = record.OutcomeOpened, r.n
	wantEqual(r.T, s.Ledger.Finish(r.Context(), id, record.Progress{State: record.StateOpened, PRNumber: r.n}, a), nil)
	r.pulls = append(r.pulls, record.PullKey{Provider: "local", Owner: p.Owner, Repo: p.Repo, Number: r.n})
	return "a pull request"
}

// settle looks how a proposal ended that was left, if there is one; else it is another reservation.
func (r *recounted) settle(s *Store, id string) string {
	if len(r.left) == 0 {
		return "a reservation"
	}
	at := r.IntN(len(r.left))
	a := attempt(r.left[at])
	a.Action, a.Code, a.Verdicts, a.Time = record.ActionSettle, "", nil, r.clock.now
	to := record.Progress{State: record.StateOpened, PRNumber: r.n}
	switch r.IntN(3) {
	case 0: // it is still not known
		a.Outcome, a.Code = record.OutcomeFailed, fault.UpstreamError
		recordAttempts(r.T, s, a)
		return "a look that settles nothing"
	case 1:
		a.Outcome, a.Code, to = record.OutcomeFailed, fault.UpstreamError, record.Progress{State: record.StateFailed}
	default:
		a.Outcome, a.PRNumber = record.OutcomeOpened, r.n
	}
	wantEqual(r.T, s.Ledger.Finish(r.Context(), r.left[at], to, a), nil)
	r.left = slices.Delete(r.left, at, at+1)
	return "a settlement"
}

// look records that something was seen of a pull request.
func (r *recounted) look(s *Store) string {
	if len(r.pulls) == 0 {
		return "nothing"
	}
	seen, found, err := s.Pulls.FindPull(r.Context(), r.pulls[r.IntN(len(r.pulls))])
	wantEqual(r.T, err, nil)
	if !found {
		return "nothing" // it is of the other root
	}
	states := append(record.PullStates(), gitprovider.StateOpen, gitprovider.StateOpen)
	seen.State, seen.Approvals, seen.ChangesRequested = states[r.IntN(len(states))], r.IntN(2), r.IntN(2)
	seen.Checks = []gitprovider.ChecksState{"", "pending", "success", "failure"}[r.IntN(4)]
	seen.AskedAt = r.clock.now
	must.Get(s.Pulls.SeePull(r.Context(), seen, nil))(r.T)
	return "a look at a pull request"
}

// lines are the rows of a query, in order.
func (r *recounted) lines(query string, args ...any) string {
	var out []string
	rows := must.Get(readerOf(r.stores[0]).Query(query, args...))(r.T)
	defer rows.Close()
	for rows.Next() {
		var name, count string
		wantEqual(r.T, rows.Scan(&name, &count), nil)
		out = append(out, name+"="+count)
	}
	wantEqual(r.T, rows.Err(), nil)
	slices.Sort(out)
	return strings.Join(out, " ")
}

// check compares what is counted as things are recorded with a count of all.
func (r *recounted) check(after string) {
	r.Helper()
	for _, c := range []struct{ name, kept, counted string }{
		{"pull requests", "SELECT provider || ' ' || standing, count FROM pull_counts WHERE count <> 0",
			`SELECT provider || ' ' || CASE WHEN state <> 'open' THEN state
				WHEN objections > 0 AND COALESCE(revised_us, 0) <= COALESCE(asked_us, 0) THEN 'agent' WHEN checks = 'failure' THEN 'failed'
				WHEN checks = 'pending' THEN 'running' WHEN objections = 0 AND approvals > 0 THEN 'ready' ELSE 'review' END,
				COUNT(*) FROM pulls GROUP BY 1`},
		{"dry runs", "SELECT id || ' ' || provider, seq FROM dry_runs WHERE waits = 1",
			`SELECT p.id || ' ' || p.provider, a.seq FROM proposals p JOIN attempts a ON a.request_id = p.id WHERE p.state = 'dry_run' AND p.pruned_us IS NULL
				AND NOT EXISTS (SELECT 1 FROM proposals t WHERE t.digest = p.digest AND t.provider = p.provider
					AND t.state IN ('reserved', 'committed', 'unsettled', 'opened'))`},
		{"dry runs by day", "SELECT day || ' ' || name, count FROM day_counts WHERE kind = 'waiting' AND count <> 0",
			`SELECT CAST(created_us / 86400000000 AS TEXT) || ' ' || provider, COUNT(*) FROM dry_runs WHERE waits = 1 GROUP BY 1
				UNION ALL SELECT '-1 ' || provider, COUNT(*) FROM dry_runs WHERE waits = 1 GROUP BY 1`},
		{"outcomes", "SELECT name, count FROM day_counts WHERE kind = 'outcome' AND day = -1",
			"SELECT outcome, COUNT(*) FROM attempts GROUP BY 1"},
		{"codes", "SELECT name, SUM(count) FROM day_counts WHERE kind = 'code' AND day >= 0 GROUP BY name",
			"SELECT code, COUNT(*) FROM attempts WHERE outcome = 'refused' GROUP BY 1"},
	} {
		if kept, counted := r.lines(c.kept), r.lines(c.counted); kept != counted {
			r.Fatalf("after %s: %s\nkept    %s\ncounted %s", after, c.name, kept, counted)
		}
	}
	since := r.clock.now.Add(-24 * time.Hour)
	counted := r.lines("SELECT code, COUNT(*) FROM attempts WHERE outcome = 'refused' AND time_us >= $1 GROUP BY 1",
		micros(since))
	for i, s := range r.stores {
		found := must.Get(s.History.RefusalsByCode(r.Context(), since))(r.T)
		var kept []string
		for _, c := range found {
			kept = append(kept, fmt.Sprintf("%s=%d", c.Code, c.Count))
		}
		slices.Sort(kept)
		if strings.Join(kept, " ") != counted {
			r.Fatalf("after %s: process %d counts refusals %s, and there were %s", after, i, kept, counted)
		}
	}
	r.checkTabs(after)
}

// checkTabs compares the lists of the tabs with their counts, and with what is found without the lists.
func (r *recounted) checkTabs(after string) {
	r.Helper()
	s := r.stores[0]
	counts := must.Get(s.History.FrameCounts(r.Context()))(r.T)
	for _, tab := range record.Tabs() {
		listed := attempts(r.T, s, record.AttemptQuery{Tab: tab, Limit: 200})
		found := attempts(r.T, s, record.AttemptQuery{Tab: tab, Limit: 200, Repo: "demo/home-cluster"})
		if ids(listed) != ids(found) {
			r.Fatalf("after %s: %s\nlisted %s\nfound  %s", after, tab, ids(listed), ids(found))
		}
		if int64(len(listed)) != counts.Tabs[tab] {
			r.Fatalf("after %s: %d of %s are listed, and %d counted", after, len(listed), tab, counts.Tabs[tab])
		}
	}
	if all := attempts(r.T, s, record.AttemptQuery{Changes: true, Limit: 200}); int64(len(all)) != counts.Tabs[""] {
		r.Fatalf("after %s: %d are listed of all changes, and %d counted: %s", after, len(all), counts.Tabs[""], ids(all))
	}
}

// The running counts equal a count of all, in whatever order the records were made.
func TestWhatIsCountedIsWhatACountOfAllFinds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRecounted(t, seed, 0)
			for range 80 {
				r.check(r.change())
			}
		})
	}
}
