package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// refusedMerge is a refusal that its caller may repeat as often as they like.
func refusedMerge(owner, repo, why string) record.Attempt {
	a := attempt("r")
	a.Door, a.Caller, a.Action, a.Owner, a.Repo = record.DoorREST, "eve", "review.merge", owner, repo
	a.Outcome, a.Code, a.Message = record.OutcomeRefused, fault.Forbidden, why
	return a
}

// repeatsOf records the same refusal again and again.
func repeatsOf(t *testing.T, s *Store, a record.Attempt, times int) {
	t.Helper()
	for range times {
		wantEqual(t, s.Ledger.Record(t.Context(), a, nil), nil)
	}
}

func TestACountThatCannotBeRecordedIsRecordedLater(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	rows := func(want int) {
		t.Helper()
		wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), want)
	}
	repeatsOf(t, s, refusedMerge("joe", "infra", "no"), 4)
	rows(1)
	c.now = c.now.Add(time.Minute)
	if err := s.Ledger.FlushRepeats(cancelled(), false); err == nil {
		t.Fatal("it could be recorded")
	}
	rows(1)
	wantEqual(t, s.Ledger.FlushRepeats(t.Context(), false), nil)
	rows(2)

	repeatsOf(t, s, refusedMerge("joe", "infra", "no"), 3)
	rows(3)
	c.now = c.now.Add(time.Minute)
	if err := s.Ledger.Record(cancelled(), attempt("other"), nil); err == nil { // with the count that is due
		t.Fatal("it could be recorded")
	}
	wantEqual(t, s.Ledger.FlushRepeats(t.Context(), false), nil)
	rows(4)
	wantEqual(t, s.Ledger.FlushRepeats(t.Context(), true), nil)
	rows(4)
}

// The second of a kind comes while the first is being recorded, which then fails.
func TestARefusalIsNotLostWithTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{})
	a := refusedMerge("joe", "infra", "no")
	s.Ledger.repeats.addAttempt(a)
	if rows, counted := s.Ledger.repeats.addAttempt(a); !counted || len(rows) > 0 {
		t.Fatal(rows, counted)
	}
	s.Ledger.repeats.forget(a)
	wantEqual(t, s.Ledger.FlushRepeats(t.Context(), false), nil)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 1)
}

func TestClosingRecordsWhatWasCounted(t *testing.T) {
	t.Parallel()
	at := emptyPlace(t)
	s := open(t, at, Options{NoSync: true})
	repeatsOf(t, s, refusedMerge("joe", "infra", "no"), 3)
	wantEqual(t, s.Close(), nil)
	wantEqual(t, count(t, open(t, at, Options{NoSync: true}), "SELECT COUNT(*) FROM audit"), 2)
}

func TestRefusalsAreOfOneKindOnlyIfTheyAreAlike(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{})
	repeatsOf(t, s, refusedMerge("joe", "xinfra", "no"), 1)
	repeatsOf(t, s, refusedMerge("joex", "infra", "no"), 1)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM audit"), 2)
	for i := range maxReasons + 3 {
		repeatsOf(t, s, refusedMerge("joe", "infra", fmt.Sprint("reason ", i)), 1)
	}
	wantEqual(t, s.Ledger.FlushRepeats(t.Context(), true), nil)
	rows := must.Get(s.Audit.Page(t.Context(), record.AuditQuery{Limit: 100}))(t)
	told := slices.ContainsFunc(rows, func(r record.RecordedAttempt) bool {
		return strings.Contains(r.Message, "4 more refusals for further reasons")
	})
	wantEqual(t, told, true)
}

// A caller who is refused for many reasons first does not hide what they really want by that.
func TestManyMistakesHideNothingThatIsForbidden(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{})
	for i := range 2 * maxReasons {
		missing := refusedMerge("joe", "infra", "there is no such pull request")
		missing.PRNumber, missing.Code = 1000+i, fault.NotFound
		repeatsOf(t, s, missing, 1)
	}
	own := refusedMerge("joe", "infra", "eve started this pull request")
	own.PRNumber = 7
	repeatsOf(t, s, own, 1)
	more := refusedMerge("joe", "infra", "there is no such pull request")
	more.PRNumber, more.Code = 2000, fault.NotFound
	repeatsOf(t, s, more, 1)
	wantEqual(t, s.Ledger.FlushRepeats(t.Context(), true), nil)
	rows := must.Get(s.Audit.Page(t.Context(), record.AuditQuery{Limit: 100}))(t)
	told := slices.ContainsFunc(rows, func(r record.RecordedAttempt) bool {
		return r.PRNumber == 7 && r.Code == fault.Forbidden && r.Message == own.Message
	})
	wantEqual(t, told, true)
	wantEqual(t, len(rows), maxReasons+3) // with the first of the further ones, what is forbidden, and the count
}
