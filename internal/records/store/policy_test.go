package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// policies returns the policies that the rows of the audit have, oldest first.
func policies(t *testing.T, s *Store) []string {
	t.Helper()
	rows := must.Get(s.Audit.Page(t.Context(), record.AuditQuery{Ascending: true}))(t)
	return each(rows, func(row record.RecordedAttempt) string { return row.Policy })
}

// No caller of the store has to think of the policy. A row that knows which one judged it keeps that.
func TestARowGetsThePolicyOfTheMoment(t *testing.T) {
	t.Parallel()
	policy := "first"
	s := openWith(t, Options{Now: noon, Policy: func() string { return policy }})
	brought := attempt("2")
	brought.Policy = "brought"
	recordAttempts(t, s, attempt("1"), brought)
	policy = "second"
	wantEqual(t, s.Access.InsertToken(t.Context(), token("t"), attempt("3")), nil)
	wantEqual(t, policies(t, s), []string{"first", "brought", "second"})
	wantEqual(t, verify(t, s, "").OK(), true)

	unknown := openNew(t)
	recordAttempts(t, unknown, attempt("1"))
	wantEqual(t, policies(t, unknown), []string{""})
}

// Refusals that are counted are recorded later, with the policy that judged the last of them.
func TestACountHasThePolicyOfItsRefusals(t *testing.T) {
	t.Parallel()
	c, policy := &clock{noon()}, "first"
	s := openWith(t, Options{Now: c.Now, Policy: func() string { return policy }})
	repeatsOf(t, s, refusedMerge("joe", "infra", "no"), 3)
	c.now, policy = c.now.Add(time.Minute), "second"
	wantEqual(t, s.Ledger.FlushRepeats(t.Context(), false), nil)
	wantEqual(t, policies(t, s), []string{"first", "first"})
}

func TestAProposalKeepsThePolicyOfItsBeginning(t *testing.T) {
	t.Parallel()
	policy := "first"
	s := openWith(t, Options{Now: noon, Policy: func() string { return policy }})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	brought, dry := proposal("2", "checks/b.md"), proposal("3", "checks/c.md")
	brought.Policy = "brought"
	reserve(t, s, brought, 0)
	wantEqual(t, s.Ledger.Record(t.Context(), attempt("3"), &dry), nil)
	policy = "second"
	for id, want := range map[string]string{"1": "first", "2": "brought", "3": "first"} {
		wantEqual(t, fmt.Sprint(id, must.Get(s.History.Proposal(t.Context(), id))(t).Policy), id+want)
	}
}

// The policy is asked before a transaction keeps others from writing: its file may be slow to read.
func TestThePolicyIsAskedBeforeTheDatabaseIsLocked(t *testing.T) {
	t.Parallel()
	var s, other *Store
	place, asked := emptyPlace(t), 0
	other = open(t, place, Options{NoSync: true, BusyTimeout: time.Second})
	s = open(t, place, Options{NoSync: true, Policy: func() string {
		asked++
		recordAttempts(t, other, attempt(fmt.Sprintf("other-%d", asked)))
		return "p"
	}})
	wantEqual(t, s.Access.InsertToken(t.Context(), token("t"), attempt("1")), nil)
	wantEqual(t, policies(t, s), []string{"", "p"})
}
