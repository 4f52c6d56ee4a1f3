package prflow_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

// revocable is a caller whose credential can be revoked.
type revocable struct {
	revoked atomic.Bool
	err     error // of the recheck; nil: the credential is not valid any more
}

func (r *revocable) caller() operation.Caller {
	return operation.Caller{
		Actor: record.Actor{Door: record.DoorREST, Client: "ci"},
		Recheck: func(context.Context) error {
			switch {
			case !r.revoked.Load():
				return nil
			case r.err != nil:
				return r.err
			}
			return fault.New(fault.Unauthenticated, "the token was revoked")
		},
	}
}

// whileGatesRun revokes the credential once the gates run.
func (b *bench) whileGatesRun(r *revocable) {
	head := b.options.Proof.Head
	b.options.Proof.Head = func(ctx context.Context) (int64, string, error) {
		r.revoked.Store(true)
		return head(ctx)
	}
}

// mustNotWrite fails the test unless a call ended with the code, without a write, with one more refused row and no
// reservation.
func (b *bench) mustNotWrite(code fault.Code, outcome record.Outcome, call func() (prflow.CreateResult, error)) {
	b.Helper()
	b.fake.Script.ForgetCalls()
	before := len(b.attempts())
	_, err := call()
	if fault.CodeOf(err) != code {
		b.Fatalf("got %v, want %s", err, code)
	}
	if n := b.fake.Script.Writes(); n != 0 {
		b.Errorf("%d writes: %v", n, b.fake.Script.Calls())
	}
	rows := b.attempts()
	if len(rows) != before+1 || rows[0].Code != code || rows[0].Outcome != outcome ||
		rows[0].RequestID != operation.RequestIDOf(err) {
		b.Errorf("%d rows more, the newest %+v", len(rows)-before, rows[0])
	}
	left, err := b.store.History.Unfinished(context.Background())
	if err != nil || len(left) != 0 {
		b.Errorf("files stay reserved: %+v, %v", left, err)
	}
}

func TestWhoIsNotLetInAnyMoreWritesNothing(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(*bench, *revocable){
		"while the gates run": (*bench).whileGatesRun,
		"while it waits for its files": func(b *bench, r *revocable) {
			b.options.Step = func(step string) { r.revoked.Store(step == "reserved") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, r := newBench(t), &revocable{}
			when(b, r)
			b.mustNotWrite(fault.Unauthenticated, record.OutcomeRefused, func() (prflow.CreateResult, error) {
				return prflow.New(b.options).Create(t.Context(), r.caller(), request(nil))
			})
			b.options.Step = nil
			b.mustOpen(request(nil)) // somebody else may, at once
		})
	}
}

func TestACreationWhoseCallerNobodyKnowsAnythingOfWritesNothing(t *testing.T) {
	t.Parallel()
	b, r := newBench(t), &revocable{err: errors.New("the records are away")}
	b.whileGatesRun(r)
	b.mustNotWrite(fault.Internal, record.OutcomeFailed, func() (prflow.CreateResult, error) {
		return prflow.New(b.options).Create(t.Context(), r.caller(), request(nil))
	})
}

func TestWhoIsNotLetInAnyMoreCompletesNoPullRequestAndRecordsNoDryRun(t *testing.T) {
	t.Parallel()
	b, r := newBench(t), &revocable{}
	b.whileGatesRun(r)
	b.options.Authority.DryRun = true
	create := func() (prflow.CreateResult, error) {
		return prflow.New(b.options).Create(t.Context(), r.caller(), request(nil))
	}
	b.mustNotWrite(fault.Unauthenticated, record.OutcomeRefused, create)
	if waiting, err := b.store.History.WaitingDryRuns(t.Context(), b.clock.Now().AddDate(0, 0, -1)); err != nil ||
		len(waiting) != 0 {
		t.Errorf("a person may open %+v, %v", waiting, err)
	}
	b.options.Authority.DryRun = false
	b.mustOpen(request(nil))
	b.mustNotWrite(fault.Unauthenticated, record.OutcomeRefused, create) // the very same change: it would be labelled
}

func TestAPersonWhoIsNotLetInAnyMoreOpensNoDryRun(t *testing.T) {
	t.Parallel()
	b, r := newBench(t), &revocable{}
	id := b.dryRun(request(nil))
	b.whileGatesRun(r)
	b.mustNotWrite(fault.Unauthenticated, record.OutcomeRefused, func() (prflow.CreateResult, error) {
		return prflow.New(b.options).Promote(t.Context(), r.caller(), id)
	})
}

func TestWhoIsNotLetInAnyMoreRevisesNothing(t *testing.T) {
	t.Parallel()
	b, r := newBench(t), &revocable{}
	pr := b.reviewed()
	b.whileGatesRun(r)
	b.mustNotWrite(fault.Unauthenticated, record.OutcomeRefused, func() (prflow.CreateResult, error) {
		return prflow.New(b.options).Create(t.Context(), r.caller(), revising(with("revises", pr.Number)))
	})
}

// What an earlier creation has written, whose place this one has taken, is found and settled by the next process.
func TestACreationThatMayNotGoOnLeavesWhatItTookOverToBeSettled(t *testing.T) {
	t.Parallel()
	b, r := newBench(t), &revocable{}
	first := prflow.New(b.options)
	b.fake.SetLateness(10 * time.Minute) // it may still arrive
	b.fake.Script.FailBefore("OpenPullRequest", fault.New(fault.Timeout, "no answer"))
	if _, err := first.Create(t.Context(), agent, request(nil)); fault.CodeOf(err) != fault.Timeout {
		t.Fatalf("got %v", err)
	}
	b.options.Step = func(step string) { r.revoked.Store(step == "reserved") }
	b.fake.Script.ForgetCalls()
	_, err := prflow.New(b.options).Create(t.Context(), r.caller(), request(nil))
	if fault.CodeOf(err) != fault.Unauthenticated || b.fake.Script.Writes() != 0 {
		t.Fatalf("got %v after %v", err, b.fake.Script.Calls())
	}
	left, err := b.store.History.Unfinished(t.Context())
	if err != nil || len(left) != 1 || left[0].State != record.StateUnsettled {
		t.Fatalf("left %+v, %v", left, err)
	}
	b.options.Step = nil
	result, err := b.create(request(nil))
	if err != nil || len(b.open()) != 1 || result.Number != b.open()[0] {
		t.Errorf("then %+v, %v, open %v", result, err, b.open())
	}
}
