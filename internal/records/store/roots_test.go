package store

import (
	"context"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// rooted opens a store of a process that has the root.
func rooted(t testing.TB, place, root string) *Store {
	t.Helper()
	return open(t, place, Options{Now: noon, LocalRoot: func() string { return root }})
}

// opens records that a proposal became the pull request with the number.
func opens(t testing.TB, s *Store, id string, number int, commit string) {
	t.Helper()
	if taken := reserve(t, s, proposal(id, "checks/"+id+".md"), 99); taken != nil {
		t.Fatalf("taken by %+v", taken)
	}
	finish(t, s, id, record.Progress{State: record.StateOpened, Branch: "b-" + id, Commit: commit, PRNumber: number})
	pr := gitprovider.PullRequest{Title: id, Branch: "b-" + id, Base: "main", HeadCommit: commit}
	made, err := s.LocalPulls.InsertPR(t.Context(), "demo/home-cluster", pr)
	wantEqual(t, err, nil)
	wantEqual(t, made.Number, number)
}

// seen is everything that a store hands out of which something is decided.
func seen(t testing.TB, s *Store, id, digest string) (out []int) {
	t.Helper()
	ctx := context.Background()
	num := func(n int, err error) {
		t.Helper()
		wantEqual(t, err, nil)
		out = append(out, n)
	}
	prs, err := s.LocalPulls.PRs(ctx, "demo/home-cluster", "")
	num(len(prs), err)
	key := record.PullKey{Provider: "local", Owner: "demo", Repo: "home-cluster", Number: 1}
	_, found, err := s.Pulls.FindPull(ctx, key)
	num(asInt(found), err)
	keys, err := s.Pulls.OpenPullsOf(ctx, "local", "demo", "home-cluster", "b-"+id)
	num(len(keys), err)
	pulls, err := s.Pulls.OpenPulls(ctx, 10)
	num(len(pulls), err)
	records, err := s.Pulls.PullRecords(ctx, []record.PullKey{key})
	num(len(records), err)
	pulls, err = s.Pulls.DuePulls(ctx, "local", noon().Add(time.Hour), noon().Add(time.Hour), 10)
	num(len(pulls), err)
	pulls, err = s.Pulls.RecentPulls(ctx, noon().Add(-time.Hour), 10)
	num(len(pulls), err)
	most, _, err := s.Pulls.OpenPullCounts(ctx, 10)
	num(len(most), err)
	_, err = s.History.Proposal(ctx, id)
	num(asInt(err == nil), nil)
	proposals, err := s.History.ByDigest(ctx, digest)
	num(len(proposals), err)
	proposals, err = s.History.MadeOf(ctx, "local", "demo", "home-cluster", 1)
	num(len(proposals), err)
	paths, err := s.History.PathsOf(ctx, "local", "demo", "home-cluster", 1)
	num(len(paths), err)
	usage, err := s.History.Usage(ctx, "local", "demo", "home-cluster", record.Claim{Within: time.Hour})
	num(len(usage.Made), err)
	repos, err := s.History.Repositories(ctx)
	num(len(repos), err)
	proposed, err := s.History.Proposed(ctx, "local")
	num(asInt(proposed), err)
	return out
}

func asInt(yes bool) int { return number01(yes) }

func repeat(n int) (out []int) {
	for range 15 {
		out = append(out, n)
	}
	return out
}

func TestWhatIsRecordedOfARootIsNothingToAnother(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), newPlace(t)
	a, b, none := rooted(t, place, "aaaaaaaaaaaaaaaa"), rooted(t, place, "bbbbbbbbbbbbbbbb"), open(t, place,
		Options{Now: noon})
	opens(t, a, "one", 1, "c1")
	wantEqual(t, seen(t, a, "one", "d-one"), repeat(1))
	wantEqual(t, seen(t, b, "one", "d-one"), repeat(0))
	wantEqual(t, seen(t, none, "one", "d-one"), repeat(0))

	reserve(t, a, proposal("held", "checks/held.md"), 99)
	for _, other := range []*Store{b, none} {
		left, err := other.History.Unfinished(ctx)
		wantEqual(t, err, nil)
		wantEqual(t, len(left), 0)
	}
	if taken := reserve(t, b, proposal("own", "checks/held.md"), 99); taken != nil {
		t.Errorf("another root's file is taken by %+v", taken)
	}
	key := record.PullKey{Provider: "local", Owner: "demo", Repo: "home-cluster", Number: 1}
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
	attempts, err := b.History.Attempts(ctx, record.AttemptQuery{Provider: "local"})
	wantEqual(t, err, nil)
	for _, row := range attempts {
		if row.RequestID == "one" {
			t.Error("the other root's attempt is listed as its own")
		}
	}
	if report := verify(t, b, ""); !report.OK() {
		t.Errorf("the audit: %+v", report)
	}
}
