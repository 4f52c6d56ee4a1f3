package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
)

// varied is the i-th of a mixed lot of attempts.
func varied(i int) prflow.Attempt {
	a := attempt(fmt.Sprintf("r%d", i))
	a.Time = noon().Add(time.Duration(i) * time.Minute)
	switch i % 4 {
	case 0:
		a.Outcome, a.Code, a.Verdicts, a.Paths, a.Title = prflow.OutcomeOpened, "", nil, []string{"checks/Inodes_50%.md"}, `Count C:\inodes`
	case 1:
		a.Caller, a.Door, a.Provider, a.Owner = "ann", prflow.DoorREST, "gitea", "Demo"
	case 2:
		a.Action, a.Outcome, a.Code = "review.merge", prflow.OutcomeDone, "" // no proposal
	}
	return a
}

func recordVaried(t testing.TB, s *Store, n int) {
	t.Helper()
	for i := range n {
		record(t, s, varied(i))
	}
}

func seqs(rows []prflow.RecordedAttempt) string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprint(r.Seq))
	}
	return strings.Join(out, " ")
}

func attempts(t testing.TB, s *Store, q prflow.AttemptQuery) []prflow.RecordedAttempt {
	t.Helper()
	rows, err := s.Attempts(context.Background(), q)
	if err != nil {
		t.Fatalf("%v (%v)", err, errCause(err))
	}
	return rows
}

func TestAttemptsAreFilteredByWhatTheRecordSays(t *testing.T) {
	s := openNew(t)
	recordVaried(t, s, 8) // rows 1 to 8; 3 and 7 are no proposals
	cases := map[string]struct {
		q    prflow.AttemptQuery
		want string
	}{
		"all, newest first":              {prflow.AttemptQuery{}, "8 6 5 4 2 1"},
		"the page before one":            {prflow.AttemptQuery{After: 2, Limit: 2}, "5 4"},
		"the page before one, by a gate": {prflow.AttemptQuery{After: 2, Gate: prflow.GateScope, Before: 1000, Limit: 1}, "4"},
		"a page":                         {prflow.AttemptQuery{Limit: 2}, "8 6"},
		"the page after it":              {prflow.AttemptQuery{Limit: 2, Before: 6}, "5 4"},
		"outcome":                        {prflow.AttemptQuery{Outcome: prflow.OutcomeOpened}, "5 1"},
		"code":                           {prflow.AttemptQuery{Code: fault.ScopeDenied}, "8 6 4 2"},
		"a gate that denied":             {prflow.AttemptQuery{Gate: prflow.GateScope}, "8 6 4 2"},
		"a gate that only passed":        {prflow.AttemptQuery{Gate: prflow.GateTier}, ""},
		"caller":                         {prflow.AttemptQuery{Caller: "ann"}, "6 2"},
		"door":                           {prflow.AttemptQuery{Door: prflow.DoorREST}, "6 2"},
		"provider":                       {prflow.AttemptQuery{Provider: "gitea"}, "6 2"},
		"repository, letter case aside":  {prflow.AttemptQuery{Repo: "DEMO/home-cluster", Caller: "ann"}, "6 2"},
		"another repository":             {prflow.AttemptQuery{Repo: "demo/other"}, ""},
		"since":                          {prflow.AttemptQuery{Since: noon().Add(5 * time.Minute)}, "8 6"},
		"until":                          {prflow.AttemptQuery{Until: noon().Add(time.Minute)}, "1"},
		"several at once":                {prflow.AttemptQuery{Caller: "ann", Outcome: prflow.OutcomeRefused, Until: noon().Add(2 * time.Minute)}, "2"},
		"search in a title":              {prflow.AttemptQuery{Search: "WATCH"}, "8 6 4 2"},
		"search in a path":               {prflow.AttemptQuery{Search: "inodes_50%.md"}, "5 1"},
		"a backslash":                    {prflow.AttemptQuery{Search: `c:\i`}, "5 1"},
		"an underscore is no wildcard":   {prflow.AttemptQuery{Search: "checks_inodes"}, ""},
		"a per cent sign is no wildcard": {prflow.AttemptQuery{Search: "che%inodes"}, ""},
		"a quote is no syntax":           {prflow.AttemptQuery{Search: `' OR 1=1 --`, Caller: "'"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantEqual(t, seqs(attempts(t, s, c.q)), c.want) })
	}
}

func TestPagesOfAttemptsStayWhereTheyAreWhileOthersAreRecorded(t *testing.T) {
	s := openNew(t)
	recordVaried(t, s, 8)
	first := attempts(t, s, prflow.AttemptQuery{Limit: 3})
	recordVaried(t, s, 4)
	second := attempts(t, s, prflow.AttemptQuery{Limit: 3, Before: first[2].Seq})
	wantEqual(t, seqs(first)+" "+seqs(second), "8 6 5 4 2 1")
}

func TestALimitIsBounded(t *testing.T) {
	s := openNew(t)
	appendMany(t, s, prflow.MaxAttemptLimit+1)
	for limit, want := range map[int]int{
		0: prflow.DefaultAttemptLimit, -1: prflow.DefaultAttemptLimit, 7: 7, 1 << 40: prflow.MaxAttemptLimit,
	} {
		wantEqual(t, len(attempts(t, s, prflow.AttemptQuery{Limit: limit})), want)
	}
}

func TestAnAttemptSaysWhatBecameOfItsProposal(t *testing.T) {
	ctx, s := context.Background(), openNew(t)
	reserve(t, s, proposal("r1", "checks/a.md"), 0)
	record(t, s, attempt("r1"))
	wantEqual(t, attempts(t, s, prflow.AttemptQuery{})[0].State, prflow.StateReserved)
	settled := attempt("r1")
	settled.Action = prflow.ActionSettle
	wantEqual(t, s.Finish(ctx, "r1", opened(1), settled), nil)
	record(t, s, attempt("r2"))

	rows := attempts(t, s, prflow.AttemptQuery{})
	wantEqual(t, seqs(rows), "3 2 1")
	wantEqual(t, []prflow.ProposalState{rows[0].State, rows[1].State, rows[2].State},
		[]prflow.ProposalState{"", prflow.StateOpened, prflow.StateOpened})
	of, err := s.AttemptsOf(ctx, "r1")
	wantEqual(t, err, nil)
	wantEqual(t, seqs(of), "1 2")
	wantEqual(t, of[1].PrevHash, of[0].Hash)
}

func TestAttemptsAreFilteredByTheStateOfTheirPullRequests(t *testing.T) {
	s := openNew(t)
	for i, id := range []string{"r1", "r2", "r3"} {
		reserve(t, s, proposal(id, "checks/"+id+".md"), 99)
		made := attempt(id)
		made.PRNumber = i + 1
		wantEqual(t, s.Finish(t.Context(), id, opened(i+1), made), nil)
	}
	other := attempt("r4") // refused because of #1
	other.PRNumber = 1
	record(t, s, other)
	r := recordOf(t, s, prflow.PullKey{Provider: "local", Owner: "demo", Repo: "home-cluster", Number: 1})
	r.State = gitprovider.StateMerged
	ok, err := s.SeePull(t.Context(), r, nil)
	wantEqual(t, []any{ok, err}, []any{true, nil})
	for state, want := range map[prflow.PullState]string{
		"": "4 3 2 1", gitprovider.StateMerged: "1", gitprovider.StateOpen: "3 2", gitprovider.StateClosed: "", prflow.StateGone: "",
	} {
		wantEqual(t, seqs(attempts(t, s, prflow.AttemptQuery{Pull: state})), want)
		wantEqual(t, seqs(attempts(t, s, prflow.AttemptQuery{Pull: state, Search: "disk"})), want)
		rows, err := s.Audit(t.Context(), AuditQuery{Pull: state})
		wantEqual(t, err, nil)
		var got []string
		for _, row := range rows {
			got = append(got, fmt.Sprint(row.Seq))
		}
		wantEqual(t, strings.Join(got, " "), want)
	}
}

func TestHostileTextOfAttemptsIsIndexedAndFound(t *testing.T) {
	s := openNew(t)
	a := attempt("r\x00\xff")
	a.Title, a.Paths = "\xff\x00"+strings.Repeat("ä", 3000), []string{"\xfe"}
	a.Owner = strings.Repeat("O", 5000)
	record(t, s, a)
	wantEqual(t, len(attempts(t, s, prflow.AttemptQuery{Search: "\xff\x00ä"})), 1)
	wantEqual(t, len(attempts(t, s, prflow.AttemptQuery{Search: strings.Repeat("x", 1<<20)})), 0)
}

// The tables are made anew from the audit, as the migration does for the rows of older programs.
func TestTheMigrationIndexesOlderRowsAsNewOnesAreIndexed(t *testing.T) {
	place := oldPlace(t, firstVersion()...)
	s := open(t, place, Options{Now: noon})
	record(t, s, attempt("new"))
	const columns = `SELECT COUNT(DISTINCT provider || repo || door || caller || outcome || code || search || time_us) FROM attempts`
	wantEqual(t, count(t, s, columns), 1)
	wantEqual(t, seqs(attempts(t, s, prflow.AttemptQuery{Gate: prflow.GateScope, Search: "dockerfile"})), "2 1")
}

func BenchmarkAttemptsOf100k(b *testing.B) {
	s := openNew(b)
	appendMany(b, s, 100_000)
	a := attempt("last")
	a.Caller = "ann"
	record(b, s, a)
	analyze(b, s)
	for name, q := range map[string]prflow.AttemptQuery{
		"newest": {}, "middle": {Before: 50_000}, "by repository": {Repo: "demo/home-cluster"},
		"by gate": {Gate: prflow.GateScope}, "by caller, none": {Caller: "nobody"}, "by caller, one": {Caller: "ann"},
		"search, none": {Search: "zebra"}, "search, all": {Search: "disk"},
		"until long ago": {Until: noon().Add(-time.Hour)}, "in a range": {Since: noon().Add(-time.Hour), Until: noon().Add(time.Hour)},
		"refused by somebody, search": {Outcome: prflow.OutcomeRefused, Caller: "claude-code/2.1", Search: "zebra"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Attempts(context.Background(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
