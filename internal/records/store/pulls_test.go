package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// openedPull records a proposal that became the pull request with the number.
func openedPull(t testing.TB, s *Store, number int) record.PullKey {
	t.Helper()
	id := fmt.Sprintf("p%d", number)
	wantFree(t, s, proposal(id, "checks/"+id+".md"), 1<<40)
	to := record.Progress{State: record.StateOpened, Branch: "claude-ops/check/" + id, Commit: "c0ffee", PRNumber: number,
		PRURL: "https://x/" + id}
	a := attempt(id)
	a.Outcome, a.Code = record.OutcomeOpened, ""
	wantEqual(t, s.Ledger.Finish(context.Background(), id, to, a), nil)
	return pullKey(number)
}

func pullKey(number int) record.PullKey {
	return record.PullKey{Provider: "local", Owner: "demo", Repo: "home-cluster", Number: number}
}

func recordOf(t testing.TB, s *Store, key record.PullKey) record.PullRecord {
	t.Helper()
	return found(s.Pulls.FindPull(context.Background(), key))(t)
}

// seenMerged is the record of a look that found the pull request merged, and what goes with it.
func seenMerged(r record.PullRecord) (record.PullRecord, *record.Attempt) {
	r.State, r.EndedAt, r.EndedBy, r.SeenBy = gitprovider.StateMerged, noon(), "ann", record.DoorPoll
	r.SeenAt, r.TriedAt, r.UpdatedAt = noon(), noon(), noon()
	return r, &record.Attempt{
		Time: noon(), RequestID: r.ProposalID, Door: record.DoorPoll, Action: record.ActionPullMerged, Provider: r.Provider,
		Owner: r.Owner, Repo: r.Repo, PRNumber: r.Number, Outcome: record.OutcomeDone,
	}
}

func TestAnOpenedPullRequestHasARecordAndAFailedProposalHasNone(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	key := openedPull(t, s, 7)
	wantEqual(t, recordOf(t, s, key), record.PullRecord{
		PullKey: key, ProposalID: "p7", State: gitprovider.StateOpen, Head: "c0ffee", UpdatedAt: noon(), Version: 1,
		Base: "main", Branch: "claude-ops/check/p7", Title: "Watch the disk", URL: "https://x/p7", OpenedAt: noon(),
	})
	shouted := key
	shouted.Owner, shouted.Repo = "DEMO", "Home-Cluster"
	wantEqual(t, recordOf(t, s, shouted).PullKey, key)

	wantFree(t, s, proposal("failed", "checks/f.md"), 1<<40)
	wantEqual(t, s.Ledger.Finish(t.Context(), "failed", record.Progress{State: record.StateFailed}, attempt("failed")),
		nil)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM pulls"), 1)
	for _, other := range []record.PullKey{
		{Provider: "github", Owner: key.Owner, Repo: key.Repo, Number: 7},
		{Provider: "local", Owner: key.Owner, Repo: "other", Number: 7},
		{Provider: "local", Owner: key.Owner, Repo: key.Repo, Number: 8},
	} {
		if _, ok, err := s.Pulls.FindPull(t.Context(), other); ok || err != nil {
			t.Errorf("%v is found, %v", other, err)
		}
	}
	records := must.Get(s.Pulls.PullRecords(t.Context(),
		[]record.PullKey{key, {Provider: "local", Owner: "x", Repo: "y", Number: 1}, key}))(t)
	wantEqual(t, records, map[record.PullKey]record.PullRecord{key: recordOf(t, s, key)})
}

func TestManyPullRequestsAreLookedUpAtOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	var keys []record.PullKey
	for n := 1; n <= 2*keysAtOnce+3; n++ {
		key := pullKey(n)
		if n%4 != 0 { // these were not opened
			openedPull(t, s, n)
		}
		keys = append(keys, key)
	}
	for count := range len(keys) + 1 {
		records := must.Get(s.Pulls.PullRecords(t.Context(), keys[:count]))(t)
		want := map[record.PullKey]record.PullRecord{}
		for _, key := range keys[:count] {
			if key.Number%4 != 0 {
				want[key] = recordOf(t, s, key)
			}
		}
		wantEqual(t, records, want)
	}
}

func TestOpenPullRequestsAreListedTheOldestFirst(t *testing.T) {
	t.Parallel()
	s, ctx := openNew(t), t.Context()
	for _, number := range []int{3, 1, 2, 4} {
		openedPull(t, s, number)
	}
	closed := recordOf(t, s, pullKey(2))
	closed.State = gitprovider.StateClosed
	wantEqual(t, must.Get(s.Pulls.SeePull(ctx, closed, nil))(t), true)
	for limit, want := range map[int][]int{10: {1, 3, 4}, 2: {1, 3}} {
		wantEqual(t, each(must.Get(s.Pulls.OpenPulls(ctx, limit))(t), numberOf), want)
	}
}

func TestALookThatIsOlderThanTheRecordChangesNothing(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	first := recordOf(t, s, openedPull(t, s, 7))
	rows := verify(t, s, "").Rows
	now, a := seenMerged(first)
	wantEqual(t, must.Get(s.Pulls.SeePull(t.Context(), now, a, notice("m")))(t), true)
	kept := recordOf(t, s, first.PullKey)
	now.Version = 2
	wantEqual(t, kept, now)

	for name, late := range map[string]record.PullRecord{"still open": first, "merged as well": now} {
		late.Version = first.Version
		ok, err := s.Pulls.SeePull(t.Context(), late, a, notice("again"))
		if ok || err != nil {
			t.Errorf("%s: recorded %t, %v", name, ok, err)
		}
	}
	wantEqual(t, recordOf(t, s, first.PullKey), kept)
	wantEqual(t, verify(t, s, "").Rows, rows+1)
	wantEqual(t, claim(t, s, noon(), 5), "m/0")
}

func TestTenProcessesThatSeeTheSameMergeRecordItOnce(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s := open(t, place, Options{})
	key := openedPull(t, s, 7)
	rows := verify(t, s, "").Rows
	wantEqual(t, together(t, 10, func(int) (bool, error) {
		out, err := child(t, "see-merged", place).Output()
		return string(out) == "recorded\n", err
	}), int64(1))
	wantEqual(t, verify(t, s, "").Rows, rows+1)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM notices"), 1)
	wantEqual(t, recordOf(t, s, key).State, gitprovider.StateMerged)
}

// childSeeMerged records that pull request 7 was merged as somebody does who has looked: unless the record says so
// already, and anew when another process was faster.
func childSeeMerged(ctx context.Context, place string) error {
	s, err := openPlace(ctx, place, Options{})
	if err != nil {
		return err
	}
	for {
		r, ok, err := s.Pulls.FindPull(ctx, pullKey(7))
		if err != nil || !ok {
			return fmt.Errorf("found %t, %w", ok, err)
		}
		if r.State == gitprovider.StateMerged {
			fmt.Println("late")
			return s.Close()
		}
		now, a := seenMerged(r)
		if ok, err = s.Pulls.SeePull(ctx, now, a, notice("m")); err != nil {
			return err
		}
		if ok {
			fmt.Println("recorded")
			return s.Close()
		}
	}
}

func TestPeopleAreToldOfAnEndOnceWhoeverIsFaster(t *testing.T) {
	t.Parallel()
	for name, pollFirst := range map[string]bool{"the person": false, "the poll": true} {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			r := recordOf(t, s, openedPull(t, s, 7))
			if pollFirst {
				now, a := seenMerged(r)
				now.EndedBy = ""
				wantEqual(t, must.Get(s.Pulls.SeePull(t.Context(), now, a, notice("told")))(t), true)
			}
			rows := verify(t, s, "").Rows
			end := record.PullRecord{PullKey: r.PullKey, State: gitprovider.StateMerged, SeenBy: record.DoorCLI, EndedAt: noon(),
				EndedBy: "bob"}
			review := attempt("review")
			review.Action = "review.merge"
			wantEqual(t, s.Ledger.RecordEnd(t.Context(), review, end, notice("told")), nil)
			wantEqual(t, claim(t, s, noon(), 5), "told/0")
			wantEqual(t, verify(t, s, "").Rows, rows+1)
			got := recordOf(t, s, r.PullKey)
			wantEqual(t, []any{got.State, got.EndedBy, got.EndedAt}, []any{gitprovider.StateMerged, "bob", noon()})

			now, a := seenMerged(r) // a look from before the end was recorded
			wantEqual(t, must.Get(s.Pulls.SeePull(t.Context(), now, a, notice("again")))(t), false)
		})
	}
}

func TestTheDueAreThoseThatNobodyTriedForLongest(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	see := func(number int, state gitprovider.State, tried, changed time.Time) {
		r := recordOf(t, s, openedPull(t, s, number))
		r.State, r.TriedAt, r.UpdatedAt = state, tried, changed
		wantEqual(t, must.Get(s.Pulls.SeePull(t.Context(), r, nil))(t), true)
	}
	ago := func(d time.Duration) time.Time { return noon().Add(-d) }
	see(1, gitprovider.StateOpen, ago(time.Minute), noon())
	see(2, gitprovider.StateOpen, ago(time.Hour), noon())
	openedPull(t, s, 3) // never
	see(4, gitprovider.StateMerged, ago(99*time.Hour), noon())
	see(5, gitprovider.StateClosed, ago(25*time.Hour), ago(48*time.Hour))
	see(6, record.StateGone, ago(2*time.Hour), ago(48*time.Hour))
	see(7, gitprovider.StateClosed, ago(99*time.Hour), ago(31*24*time.Hour))
	see(8, gitprovider.StateOpen, ago(-time.Hour), noon())
	due := func(limit int) []int {
		t.Helper()
		records := must.Get(s.Pulls.DuePulls(t.Context(), "local", ago(10*time.Minute), ago(24*time.Hour), limit))(t)
		return each(records, numberOf)
	}
	wantEqual(t, due(9), []int{3, 5, 2, 8})
	wantEqual(t, due(2), []int{3, 5})
	wantEqual(t, s.Pulls.TriedPull(t.Context(), pullKey(3)), nil)
	wantEqual(t, due(9), []int{5, 2, 8})
	others, err := s.Pulls.DuePulls(t.Context(), "github", noon(), noon(), 9)
	wantEqual(t, []any{len(others), err}, []any{0, nil})
}

func TestOneOfManyClaimsARound(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	claims := func() int64 {
		t.Helper()
		return together(t, 8, func(int) (bool, error) {
			mine, next, err := s.JobClaims.ClaimRound(context.Background(), "poll", time.Minute)
			if !next.Equal(c.now.Add(time.Minute)) {
				t.Error(next)
			}
			return mine, err
		})
	}
	wantEqual(t, claims(), int64(1))
	wantEqual(t, claims(), int64(0))
	mine, _, err := s.JobClaims.ClaimRound(t.Context(), "other", time.Minute)
	wantEqual(t, []any{mine, err}, []any{true, nil})
	c.now = noon().Add(time.Minute - time.Second)
	mine, next, err := s.JobClaims.ClaimRound(t.Context(), "poll", time.Minute)
	wantEqual(t, []any{mine, next, err}, []any{false, noon().Add(time.Minute), nil})
	c.now = noon().Add(time.Minute)
	wantEqual(t, claims(), int64(1))
	c.now = noon().Add(-time.Hour) // the clock was wrong
	wantEqual(t, claims(), int64(1))
}

func TestADeliveryIsFreshOnceWithinBounds(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	take := func(provider, id string, want bool) {
		t.Helper()
		wantEqual(t, must.Get(s.JobClaims.TakeDelivery(t.Context(), provider, id))(t), want)
	}
	take("github", "a", true)
	take("github", "a", false)
	take("gitea", "a", true)
	take("github", "A", true)
	c.now = noon().Add(7*24*time.Hour - time.Second)
	take("github", "a", false)
	c.now = noon().Add(7 * 24 * time.Hour)
	take("github", "a", true)

	mustExec(t, raw(t, s), fmt.Sprintf(`INSERT INTO webhook_deliveries (provider, id, seen_us)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'gitea', 'many-' || CAST(i AS TEXT), %d + i FROM n`, 2*maxDelivered, micros(c.now)))
	c.now = c.now.Add(time.Hour)
	take("github", "b", true)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM webhook_deliveries"), maxDelivered)
	take("gitea", fmt.Sprintf("many-%d", 2*maxDelivered), false)
	take("gitea", "many-1", true)
}

func TestRecentPullsAreTheOpenOnesAndThoseThatEndedLately(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	for number := 1; number <= 4; number++ {
		openedPull(t, s, number)
	}
	end := func(number int, at time.Time) {
		r, a := seenMerged(recordOf(t, s, pullKey(number)))
		r.EndedAt, r.UpdatedAt = at, at
		wantEqual(t, must.Get(s.Pulls.SeePull(ctx, r, a))(t), true)
	}
	end(1, noon().Add(-20*24*time.Hour))
	end(3, noon().Add(-time.Hour))
	numbers := func(limit int) []int {
		return each(must.Get(s.Pulls.RecentPulls(ctx, noon().Add(-14*24*time.Hour), limit))(t), numberOf)
	}
	wantEqual(t, numbers(10), []int{2, 4, 3})
	wantEqual(t, numbers(2), []int{2, 4})
}

func TestPathsOfPullRequestsAreRememberedByHead(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	infra := gitprovider.RepoRef{Owner: "Joe", Name: "Infra"}
	opened := func() *Store {
		l := newAt(place, Options{})
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	opened().PullPaths("gitea").RememberPaths(ctx, infra, 7, "aaa", []string{"checks/a.md", "checks/b.md"})

	m := opened().PullPaths("gitea") // another process
	want := func(number int, head string, want []string, known bool) {
		t.Helper()
		paths, ok := m.PathsAt(ctx, gitprovider.RepoRef{Owner: "joe", Name: "infra"}, number, head)
		wantEqual(t, ok, known)
		wantEqual(t, paths, want)
	}
	want(7, "aaa", []string{"checks/a.md", "checks/b.md"}, true)
	want(7, "bbb", nil, false)
	want(8, "aaa", nil, false)
	m.RememberPaths(ctx, infra, 7, "bbb", nil)
	want(7, "aaa", nil, false)
	want(7, "bbb", []string{}, true)
	if _, ok := opened().PullPaths("github").PathsAt(ctx, infra, 7, "bbb"); ok {
		t.Error("another provider's pull request was taken for this one's")
	}
}

func TestPathsOfManyPullRequestsAreRememberedAtOnce(t *testing.T) {
	t.Parallel()
	ctx, l := context.Background(), newAt(emptyPlace(t), Options{})
	t.Cleanup(func() { _ = l.Close() })
	m, infra := l.PullPaths("gitea"), gitprovider.RepoRef{Owner: "joe", Name: "infra"}
	heads, paths := map[int]string{}, map[int][]string{}
	for number := 1; number <= 2*maxNumbers+1; number++ {
		heads[number], paths[number] = "aaa", []string{"checks/a.md"}
	}
	m.RememberManyPaths(ctx, infra, heads, paths)
	m.RememberPaths(ctx, infra, 7, "bbb", []string{"checks/b.md"})
	got := m.ManyPathsAt(ctx, gitprovider.RepoRef{Owner: "Joe", Name: "Infra"}, heads)
	if _, outdated := got[7]; outdated || len(got) != 2*maxNumbers {
		t.Errorf("%d pull requests, #7 among them: %t", len(got), outdated)
	}
	wantEqual(t, m.ManyPathsAt(ctx, infra, map[int]string{7: "bbb", 9999: "aaa"}), map[int][]string{7: {"checks/b.md"}})
	wantEqual(t, len(m.ManyPathsAt(ctx, gitprovider.RepoRef{Owner: "joe", Name: "other"}, heads)), 0)
}

func TestWhatCannotBeRememberedIsNoFailure(t *testing.T) {
	t.Parallel()
	l := newAt(emptyPlace(t), Options{})
	must.Do(t, l.Close())
	m, ctx := l.PullPaths("gitea"), context.Background()
	m.RememberPaths(ctx, gitprovider.RepoRef{Owner: "joe", Name: "infra"}, 7, "aaa", []string{"checks/a.md"})
	if _, ok := m.PathsAt(ctx, gitprovider.RepoRef{Owner: "joe", Name: "infra"}, 7, "aaa"); ok {
		t.Error("a closed store remembered something")
	}
}

// rooted opens a store of a process that has the root.
func rooted(t testing.TB, place, root string) *Store {
	t.Helper()
	return open(t, place, Options{Now: noon, LocalRoot: func() string { return root }})
}

// opens records that a proposal became the pull request with the number.
func opens(t testing.TB, s *Store, id string, number int, commit string) {
	t.Helper()
	wantFree(t, s, proposal(id, "checks/"+id+".md"), 99)
	finish(t, s, id, record.Progress{State: record.StateOpened, Branch: "b-" + id, Commit: commit, PRNumber: number})
	pr := gitprovider.PullRequest{Title: id, Branch: "b-" + id, Base: "main", HeadCommit: commit}
	wantEqual(t, must.Get(s.LocalPulls.InsertPR(t.Context(), "demo/home-cluster", pr))(t).Number, number)
}

// seen is everything that a store hands out of which something is decided.
func seen(t testing.TB, s *Store, id, digest string) []int {
	t.Helper()
	const provider, owner, repo = "local", "demo", "home-cluster"
	ctx, key, later := context.Background(), pullKey(1), noon().Add(time.Hour)
	_, known, err := s.Pulls.FindPull(ctx, key)
	must.Do(t, err)
	most, _, err := s.Pulls.OpenPullCounts(ctx, 10)
	must.Do(t, err)
	_, err = s.History.Proposal(ctx, id)
	return []int{
		asInt(known), len(most), asInt(err == nil),
		len(must.Get(s.LocalPulls.PRs(ctx, "demo/home-cluster", ""))(t)),
		len(must.Get(s.Pulls.OpenPullsOf(ctx, provider, owner, repo, "b-"+id))(t)),
		len(must.Get(s.Pulls.OpenPulls(ctx, 10))(t)),
		len(must.Get(s.Pulls.PullRecords(ctx, []record.PullKey{key}))(t)),
		len(must.Get(s.Pulls.DuePulls(ctx, provider, later, later, 10))(t)),
		len(must.Get(s.Pulls.RecentPulls(ctx, noon().Add(-time.Hour), 10))(t)),
		len(must.Get(s.History.ByDigest(ctx, digest))(t)),
		len(must.Get(s.History.MadeOf(ctx, provider, owner, repo, 1))(t)),
		len(must.Get(s.History.PathsOf(ctx, provider, owner, repo, 1))(t)),
		len(must.Get(s.History.Usage(ctx, provider, owner, repo, record.Claim{Within: time.Hour}))(t).Made),
		len(must.Get(s.History.Repositories(ctx))(t)),
		asInt(must.Get(s.History.Proposed(ctx, provider))(t)),
	}
}

func asInt(yes bool) int { return number01(yes) }

func repeat(n int) []int { return slices.Repeat([]int{n}, 15) }

func TestWhatIsRecordedOfARootIsNothingToAnother(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	a, b, none := rooted(t, place, "aaaaaaaaaaaaaaaa"), rooted(t, place, "bbbbbbbbbbbbbbbb"), open(t, place,
		Options{Now: noon})
	opens(t, a, "one", 1, "c1")
	wantEqual(t, seen(t, a, "one", "d-one"), repeat(1))
	wantEqual(t, seen(t, b, "one", "d-one"), repeat(0))
	wantEqual(t, seen(t, none, "one", "d-one"), repeat(0))

	reserve(t, a, proposal("held", "checks/held.md"), 99)
	for _, other := range []*Store{b, none} {
		wantEqual(t, len(must.Get(other.History.Unfinished(ctx))(t)), 0)
	}
	wantFree(t, b, proposal("own", "checks/held.md"), 99) // another root's file
	key := pullKey(1)
	wantEqual(t, a.Ledger.LiftCooldown(ctx, key, attempt("lift")), nil)
	by, _, err := b.History.CooldownLifted(ctx, key)
	wantEqual(t, []any{by, err}, []any{"", nil})
	closed := record.PullRecord{PullKey: key, State: gitprovider.StateClosed, EndedAt: noon()}
	wantEqual(t, b.Ledger.RecordEnd(ctx, attempt("end"), closed), nil)
	r, _, err := a.Pulls.FindPull(ctx, key)
	wantEqual(t, []any{r.State, r.Provider, err}, []any{gitprovider.StateOpen, "local", nil})

	rows, err := a.Audit.Page(ctx, record.AuditQuery{RequestID: "one"})
	wantEqual(t, []any{rows[0].Provider, err}, []any{"local", nil})
	rows, err = b.Audit.Page(ctx, record.AuditQuery{RequestID: "one"})
	wantEqual(t, []any{rows[0].Provider, err}, []any{"local:aaaaaaaaaaaaaaaa", nil})
	for _, row := range must.Get(b.History.Attempts(ctx, record.AttemptQuery{Provider: "local"}))(t) {
		if row.RequestID == "one" {
			t.Error("the other root's attempt is listed as its own")
		}
	}
	if report := verify(t, b, ""); !report.OK() {
		t.Errorf("the audit: %+v", report)
	}
}

// Who revises a pull request stands behind it from the reservation on, although the process that revises it is killed
// before it records its commit.
func TestWhoRevisesStandsBehindThePullRequestFromTheStart(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	key := openedPull(t, s, 7)
	recordAttempts(t, s, madePull("opened", record.OutcomeOpened, 7, "1000"))
	revision := proposal("revision", "checks/other.md")
	revision.Actor, revision.Revises = record.OSUser("1001", "jim").At(record.DoorMCP), 7
	stands := func() bool {
		t.Helper()
		all := must.Get(s.Pulls.Starters(t.Context(), key))(t)
		return slices.ContainsFunc(all, func(a record.Actor) bool { return a.Person != nil && a.Person.Subject == "1001" })
	}
	wantEqual(t, stands(), false)
	wantFree(t, s, revision, 99)
	for _, state := range []record.ProposalState{"", record.StateCommitted, record.StateUnsettled} {
		if state != "" {
			wantEqual(t, s.Ledger.Advance(t.Context(), "revision", record.Progress{State: state}), nil)
		}
		if !stands() {
			t.Errorf("nobody stands behind a revision in the state %q", state)
		}
	}
	finish(t, s, "revision", record.Progress{State: record.StateFailed})
	wantEqual(t, stands(), false) // it has added nothing
}

// madePull returns the attempt of a user to make a pull request.
func madePull(id string, outcome record.Outcome, number int, uid string) record.Attempt {
	a := attempt(id)
	a.Outcome, a.Code, a.PRNumber = outcome, "", number
	a.Actor = record.OSUser(uid, "user").At(record.DoorMCP)
	return a
}

// Who asks for the same, or revises it, does not stand in for who opened it and was killed before that was recorded.
func TestNobodyStandsBehindAPullRequestWhoseOpeningIsNotRecorded(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	key := pullKey(9)
	behind := func(want int) {
		t.Helper()
		wantEqual(t, len(must.Get(s.Pulls.Starters(t.Context(), key))(t)), want)
	}
	recordAttempts(t, s, madePull("again", record.OutcomeReused, 9, "1001"),
		madePull("revised", record.OutcomeRevised, 9, "1002"))
	behind(0)
	recordAttempts(t, s, madePull("first", record.OutcomeOpened, 9, "1000"))
	behind(3)
}
