package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// varied is the i-th of a mixed lot of attempts.
func varied(i int) record.Attempt {
	a := attempt(fmt.Sprintf("r%d", i))
	a.Time = noon().Add(time.Duration(i) * time.Minute)
	switch i % 4 {
	case 0:
		a.Outcome, a.Code, a.Verdicts = record.OutcomeOpened, "", nil
		a.Paths, a.Title = []string{"checks/Inodes_50%.md"}, `Count C:\inodes`
	case 1:
		a.Caller, a.Door, a.Provider, a.Owner = "ann", record.DoorREST, "gitea", "Demo"
	case 2:
		a.Action, a.Outcome, a.Code = "review.merge", record.OutcomeDone, "" // no proposal
	}
	return a
}

func recordVaried(t testing.TB, s *Store, n int) {
	t.Helper()
	for i := range n {
		recordAttempts(t, s, varied(i))
	}
}

func seqs(rows []record.RecordedAttempt) string {
	return strings.Join(each(rows, func(r record.RecordedAttempt) string { return fmt.Sprint(r.Seq) }), " ")
}

func attempts(t testing.TB, s *Store, q record.AttemptQuery) []record.RecordedAttempt {
	t.Helper()
	return must.Get(s.History.Attempts(context.Background(), q))(t)
}

func TestAttemptsAreFilteredByWhatTheRecordSays(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordVaried(t, s, 8) // rows 1 to 8; 3 and 7 are not proposals
	cases := map[string]struct {
		q    record.AttemptQuery
		want string
	}{
		"all, newest first":   {record.AttemptQuery{}, "8 6 5 4 2 1"},
		"the page before one": {record.AttemptQuery{After: 2, Limit: 2}, "5 4"},
		"the page before one, by a gate": {record.AttemptQuery{After: 2, Gate: record.GateScope, Before: 1000, Limit: 1},
			"4"},
		"a page":                        {record.AttemptQuery{Limit: 2}, "8 6"},
		"the page after it":             {record.AttemptQuery{Limit: 2, Before: 6}, "5 4"},
		"outcome":                       {record.AttemptQuery{Outcome: record.OutcomeOpened}, "5 1"},
		"code":                          {record.AttemptQuery{Code: fault.ScopeDenied}, "8 6 4 2"},
		"a gate that denied":            {record.AttemptQuery{Gate: record.GateScope}, "8 6 4 2"},
		"a gate that only passed":       {record.AttemptQuery{Gate: record.GateTier}, ""},
		"caller":                        {record.AttemptQuery{Caller: "ann"}, "6 2"},
		"door":                          {record.AttemptQuery{Door: record.DoorREST}, "6 2"},
		"provider":                      {record.AttemptQuery{Provider: "gitea"}, "6 2"},
		"repository, letter case aside": {record.AttemptQuery{Repo: "DEMO/home-cluster", Caller: "ann"}, "6 2"},
		"another repository":            {record.AttemptQuery{Repo: "demo/other"}, ""},
		"since":                         {record.AttemptQuery{Since: noon().Add(5 * time.Minute)}, "8 6"},
		"until":                         {record.AttemptQuery{Until: noon().Add(time.Minute)}, "1"},
		"several at once": {record.AttemptQuery{Caller: "ann", Outcome: record.OutcomeRefused,
			Until: noon().Add(2 * time.Minute)}, "2"},
		"search in a title":                 {record.AttemptQuery{Search: "WATCH"}, "8 6 4 2"},
		"search in a path":                  {record.AttemptQuery{Search: "inodes_50%.md"}, "5 1"},
		"a backslash":                       {record.AttemptQuery{Search: `c:\i`}, "5 1"},
		"an underscore is not a wildcard":   {record.AttemptQuery{Search: "checks_inodes"}, ""},
		"a per cent sign is not a wildcard": {record.AttemptQuery{Search: "che%inodes"}, ""},
		"a quote is not syntax":             {record.AttemptQuery{Search: `' OR 1=1 --`, Caller: "'"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantEqual(t, seqs(attempts(t, s, c.q)), c.want) })
	}
}

func TestPagesOfAttemptsStayWhereTheyAreWhileOthersAreRecorded(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordVaried(t, s, 8)
	first := attempts(t, s, record.AttemptQuery{Limit: 3})
	recordVaried(t, s, 4)
	second := attempts(t, s, record.AttemptQuery{Limit: 3, Before: first[2].Seq})
	wantEqual(t, seqs(first)+" "+seqs(second), "8 6 5 4 2 1")
}

func TestALimitIsBounded(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	appendMany(t, s, record.MaxAttemptLimit+1)
	for limit, want := range map[int]int{
		0: record.DefaultAttemptLimit, -1: record.DefaultAttemptLimit, 7: 7, 1 << 40: record.MaxAttemptLimit,
	} {
		wantEqual(t, len(attempts(t, s, record.AttemptQuery{Limit: limit})), want)
	}
}

func TestAnAttemptSaysWhatBecameOfItsProposal(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	reserve(t, s, proposal("r1", "checks/a.md"), 0)
	recordAttempts(t, s, attempt("r1"))
	wantEqual(t, attempts(t, s, record.AttemptQuery{})[0].State, record.StateReserved)
	settled := attempt("r1")
	settled.Action = record.ActionSettle
	wantEqual(t, s.Ledger.Finish(ctx, "r1", opened(1), settled), nil)
	recordAttempts(t, s, attempt("r2"))

	rows := attempts(t, s, record.AttemptQuery{})
	wantEqual(t, seqs(rows), "3 2 1")
	wantEqual(t, []record.ProposalState{rows[0].State, rows[1].State, rows[2].State},
		[]record.ProposalState{"", record.StateOpened, record.StateOpened})
	of := must.Get(s.History.AttemptsOf(ctx, "r1"))(t)
	wantEqual(t, seqs(of), "1 2")
	wantEqual(t, of[1].PrevHash, of[0].Hash)
}

func TestAttemptsAreFilteredByTheStateOfTheirPullRequests(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for i, id := range []string{"r1", "r2", "r3"} {
		reserve(t, s, proposal(id, "checks/"+id+".md"), 99)
		made := attempt(id)
		made.PRNumber = i + 1
		wantEqual(t, s.Ledger.Finish(t.Context(), id, opened(i+1), made), nil)
	}
	other := attempt("r4") // refused because of #1
	other.PRNumber = 1
	recordAttempts(t, s, other)
	r := recordOf(t, s, pullKey(1))
	r.State = gitprovider.StateMerged
	wantEqual(t, must.Get(s.Pulls.SeePull(t.Context(), r, nil))(t), true)
	for state, want := range map[record.PullState]string{
		"": "4 3 2 1", gitprovider.StateMerged: "1", gitprovider.StateOpen: "3 2", gitprovider.StateClosed: "",
		record.StateGone: "",
	} {
		wantEqual(t, seqs(attempts(t, s, record.AttemptQuery{Pull: state})), want)
		wantEqual(t, seqs(attempts(t, s, record.AttemptQuery{Pull: state, Search: "disk"})), want)
		wantEqual(t, seqs(must.Get(s.Audit.Page(t.Context(), record.AuditQuery{Pull: state}))(t)), want)
	}
}

func TestHostileTextOfAttemptsIsIndexedAndFound(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	a := attempt("r\x00\xff")
	a.Title, a.Paths = "\xff\x00"+strings.Repeat("ä", 3000), []string{"\xfe"}
	a.Owner = strings.Repeat("O", 5000)
	recordAttempts(t, s, a)
	wantEqual(t, len(attempts(t, s, record.AttemptQuery{Search: "\xff\x00ä"})), 1)
	wantEqual(t, len(attempts(t, s, record.AttemptQuery{Search: strings.Repeat("x", 1<<20)})), 0)
}

func BenchmarkAttemptsOf100k(b *testing.B) {
	s := openNew(b)
	appendMany(b, s, 100_000)
	a := attempt("last")
	a.Caller = "ann"
	recordAttempts(b, s, a)
	analyze(b, s)
	for name, q := range map[string]record.AttemptQuery{
		"newest": {}, "middle": {Before: 50_000}, "by repository": {Repo: "demo/home-cluster"},
		"by gate": {Gate: record.GateScope}, "by caller, none": {Caller: "nobody"}, "by caller, one": {Caller: "ann"},
		"search, none": {Search: "zebra"}, "search, all": {Search: "disk"},
		"until long ago":              {Until: noon().Add(-time.Hour)},
		"in a range":                  {Since: noon().Add(-time.Hour), Until: noon().Add(time.Hour)},
		"refused by somebody, search": {Outcome: record.OutcomeRefused, Caller: "claude-code/2.1", Search: "zebra"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must.Get(s.History.Attempts(context.Background(), q))(b)
			}
		})
	}
}

func TestOfRefusedChangesTheNewestAreKept(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openNew(t)
	const kept, more = 1000, 5
	refusal := func(i int) record.Attempt {
		return record.Attempt{
			RequestID: fmt.Sprintf("r%05d", i), Time: noon().Add(time.Duration(i) * time.Second), Action: record.ActionCreate,
			Outcome: record.OutcomeRefused,
			Wanted:  &record.RefusedChange{Body: record.RefusedText{Text: fmt.Sprint(i)}},
		}
	}
	recordTogether(t, s, kept-more, refusal)
	for i := kept - more; i < kept+more; i++ {
		wantEqual(t, s.Ledger.Record(ctx, refusal(i), nil), nil)
	}
	for i, there := range map[int]bool{0: false, more - 1: false, more: true, kept + more - 1: true} {
		got := must.Get(s.History.Wanted(ctx, fmt.Sprintf("r%05d", i)))(t)
		if (got != nil) != there || there && got.Body.Text != fmt.Sprint(i) {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

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
		got := must.Get(s.History.RefusalsByGate(ctx, noon().AddDate(0, 0, since)))(t)
		total := 0
		for _, g := range got {
			wantEqual(t, g.Gate, record.GateScope)
			total += g.Count
		}
		wantEqual(t, total, want)
	}
	got := must.Get(s.History.OutcomesByDay(ctx, noon().AddDate(0, 0, 1).Add(11*time.Hour)))(t)
	day := noon().Truncate(24*time.Hour).AddDate(0, 0, 1)
	wantEqual(t, got, []record.OutcomeCount{
		{Day: day, Outcome: record.OutcomeRefused, Count: 2}, {Day: day, Outcome: record.OutcomeReused, Count: 1},
		{Day: day.AddDate(0, 0, 1), Outcome: record.OutcomeRefused, Count: 3},
		{Day: day.AddDate(0, 0, 1), Outcome: record.OutcomeReused, Count: 1},
	})
}

// Ends of pull requests count once, by the day, whether people decided here or at the forge.
func TestEndsOfPullRequestsCountByDay(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), context.Background()
	for _, one := range []struct {
		action  string
		outcome record.Outcome
	}{
		{record.ActionPullMerged, record.OutcomeDone}, {record.ActionReviewMerge, record.OutcomeDone},
		{record.ActionReviewMerge, record.OutcomeRefused}, {record.ActionPullClosed, record.OutcomeDone},
		{"review.close", record.OutcomeDone}, {"review.close", record.OutcomeFailed}, {"review.approve", record.OutcomeDone},
	} {
		wantEqual(t, s.Ledger.Record(ctx, record.Attempt{Time: noon(), Action: one.action, Outcome: one.outcome,
			Door: record.DoorWeb, RequestID: one.action}, nil), nil)
	}
	got := must.Get(s.History.OutcomesByDay(ctx, noon()))(t)
	day := noon().Truncate(24 * time.Hour)
	wantEqual(t, got, []record.OutcomeCount{{Day: day, Outcome: record.EndedClosed, Count: 2},
		{Day: day, Outcome: record.EndedMerged, Count: 2}})
	totals, _, err := s.History.Totals(ctx)
	wantEqual(t, err, nil)
	wantEqual(t, len(totals), 0)
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
		rows := must.Get(s.History.Attempts(ctx, q))(t)
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
		wantEqual(t, must.Get(s.History.Attempts(ctx, q))(t)[0].RequestID, want[1:2])
		q.Gate, q.Repo, q.Outcome = record.GateScope, rows[0].Owner+"/"+rows[0].Repo, rows[0].Outcome
		wantEqual(t, must.Get(s.History.Attempts(ctx, q))(t)[0].RequestID, want[1:2])
		q.Repo = "nobody/nothing"
		wantEqual(t, len(must.Get(s.History.Attempts(ctx, q))(t)), 0)
	}
}

func TestADryRunWaitsUntilItsChangeIsTakenUp(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), context.Background()
	dry := func(id, digest string, at time.Time) {
		p := proposal(id)
		p.State, p.Digest, p.CreatedAt = record.StateDryRun, digest, at
		must.Do(t, s.Ledger.Record(ctx, attempt(id), &p))
	}
	dry("old", "d0", noon().Add(-time.Hour))
	dry("a", "d1", noon())
	dry("b", "d2", noon().Add(time.Minute))
	waiting := func() (ids string) {
		for _, p := range must.Get(s.History.WaitingDryRuns(ctx, noon()))(t) {
			ids += p.ID + " "
		}
		return ids
	}
	oldest := func(since time.Time) time.Time {
		return must.Get(s.History.OldestDryRun(ctx, since))(t)
	}
	wantEqual(t, waiting(), "b a ")
	wantEqual(t, oldest(noon()), noon())
	wantEqual(t, oldest(noon().Add(time.Second)), noon().Add(time.Minute))
	p := proposal("opened")
	p.Digest = "d1"
	reserve(t, s, p, 1000)
	wantEqual(t, waiting(), "b ")
	wantEqual(t, oldest(noon()), noon().Add(time.Minute))
	wantEqual(t, oldest(noon().Add(time.Hour)), time.Time{})

	for provider, want := range map[string]bool{p.Provider: true, "gitea": false} {
		wantEqual(t, must.Get(s.History.Proposed(ctx, provider))(t), want)
	}
	repos, err := s.History.Repositories(ctx)
	if err != nil || len(repos) != 1 || repos[0] != (record.RepoName{Provider: p.Provider, Owner: p.Owner, Name: p.Repo}) {
		t.Errorf("%v %v", repos, err)
	}
}
