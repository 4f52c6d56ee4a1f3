package prflow_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

var person = operation.Caller{Actor: record.Actor{Door: record.DoorREST, Client: "ann"}}

// shown makes a dry run of the request.
func (b *bench) shown(raw []byte) prflow.CreateResult {
	b.Helper()
	b.options.Authority.DryRun = true
	defer func() { b.options.Authority.DryRun = false }()
	b.fake.Script.ForgetCalls()
	result, err := b.create(raw)
	if err != nil || !result.DryRun || b.fake.Script.Writes() != 0 {
		b.Fatalf("no dry run: %+v, %v, %d writes", result, err, b.fake.Script.Writes())
	}
	return result
}

// dryRun records a dry run of the request, and returns its id.
func (b *bench) dryRun(raw []byte) string {
	b.Helper()
	return b.shown(raw).RequestID
}

func (b *bench) promote(id string) (prflow.CreateResult, error) {
	return prflow.New(b.options).Promote(context.Background(), person, id)
}

func TestAPersonOpensWhatADryRunHasShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.dryRun(createRequest(with("change_type", "check")))
	if got := b.open(); len(got) != 0 {
		t.Fatalf("the dry run opened %v", got)
	}
	result, err := b.promote(id)
	if err != nil || result.Number == 0 || result.DryRun || result.RequestID == id {
		t.Fatalf("got %+v, %v", result, err)
	}
	row := b.attempts()[0]
	if row.Action != record.ActionPromote || row.Door != record.DoorREST || row.Caller != "ann" ||
		row.PRNumber != result.Number {
		t.Errorf("recorded as %+v", row)
	}
	opened, err := b.store.History.Proposal(context.Background(), result.RequestID)
	b.must(err)
	if n := strings.Count(opened.Body, "through Claude Ops"); n != 1 || !strings.Contains(opened.Body, result.RequestID) ||
		strings.Contains(opened.Body, id) {
		t.Errorf("the body has %d footers, or one of the dry run:\n%s", n, opened.Body)
	}
	if !strings.HasPrefix(result.Branch, "claude-ops/check/") {
		t.Errorf("branch %s", result.Branch)
	}
	again, err := b.promote(id)
	if err != nil || !again.Reused || again.Number != result.Number {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	b.mustVerify()
}

func TestAPromotionPassesEveryGateAgain(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(b *bench)
		code   fault.Code
	}{
		"the tier was lowered":     {func(b *bench) { b.options.Authority.Tier = 1 }, fault.TierDenied},
		"the server is read-only":  {func(b *bench) { b.options.Authority.ReadOnly = "read-only" }, fault.ReadOnly},
		"the server is in dry run": {func(b *bench) { b.options.Authority.DryRun = true }, fault.ReadOnly},
		"the file exists by now": {
			func(b *bench) { b.fake.AddRepo("joe", "infra", map[string]string{"checks/inodes.md": "#\n"}) }, fault.Conflict},
		"the scope was narrowed": {
			func(b *bench) { b.options.Authority.Policy = mustPolicy(b.T, "scope: {allow: [playbooks/*.md]}") },
			fault.ScopeDenied},
		"the provider is gone": {func(b *bench) { b.options.Registry = gitprovider.NewRegistry(nil, nil, "", nil) },
			fault.ProviderUnresolved},
		"the repository left the list": {
			func(b *bench) { b.options.Authority.Policy = mustPolicy(b.T, "repositories: [joe/other]") }, fault.RepoNotAllowed},
		"another pull request came first": {func(b *bench) {
			b.mustOpen(createRequest(with("files", []any{file("checks/inodes.md", "create", "# Other\n")})))
		}, fault.DuplicatePR},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := b.dryRun(createRequest(nil))
			c.change(b)
			b.mustNotPromote(c.code, id)
		})
	}
}

func TestOnlyADryRunCanBePromoted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.promote("nothing"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown id: %v", err)
	}
	opened := b.mustOpen(createRequest(nil))
	if _, err := b.promote(opened.RequestID); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("an open one: %v", err)
	}
	if rows := b.attempts(); rows[0].Code != fault.Conflict || rows[0].Repo != "infra" ||
		rows[1].Outcome != record.OutcomeOpened {
		t.Errorf("recorded as %+v", rows[0])
	}
}

func TestACeilingLowersTheTierAndNeverRaisesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ own, ceiling, want gitprovider.Tier }{
		{2, 3, 2}, {2, 2, 2}, {3, 2, 2}, {3, 1, 1}, {3, 0, 1}, {3, -1, 1}, {1, 99, 1},
	} {
		b := newBench(t)
		b.options.Authority.Tier = c.own
		s := prflow.New(b.options)
		if got := s.AtMost(c.ceiling).CurrentAuthority().Tier; got != c.want || s.Authority.Tier != c.own {
			t.Errorf("tier %d at most %d is %d, want %d; the service has %d", c.own, c.ceiling, got, c.want, s.Authority.Tier)
		}
	}
	b := newBench(t)
	b.options.Authority.Tier = 3
	_, err := prflow.New(b.options).AtMost(1).Create(context.Background(), agent, createRequest(nil))
	if fault.CodeOf(err) != fault.TierDenied || b.attempts()[0].Tier != 1 {
		t.Errorf("got %v, recorded at tier %d", err, b.attempts()[0].Tier)
	}
}

func TestWhatWasLeftIsLookedForOnceUnderAllCeilings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	looks := &counted{History: b.store.History}
	b.options.History, b.options.Authority.Tier = looks, 3
	s := prflow.New(b.options)
	for _, one := range []*prflow.Service{s.AtMost(2), s, s.AtMost(2)} {
		if _, err := one.Create(context.Background(), agent, createRequest(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if looks.unfinished != 1 {
		t.Errorf("looked %d times", looks.unfinished)
	}
}

type counted struct {
	prflow.History
	unfinished int
}

func (c *counted) Unfinished(ctx context.Context) ([]record.Proposal, error) {
	c.unfinished++
	return c.History.Unfinished(ctx)
}

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
// reservation. It returns the error.
func (b *bench) mustNotWrite(code fault.Code, outcome record.Outcome, call func() (prflow.CreateResult, error)) error {
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
	b.mustHoldNothing()
	return err
}

// createAs proposes as a caller whose credential may be revoked.
func (b *bench) createAs(r *revocable, raw []byte) func() (prflow.CreateResult, error) {
	return func() (prflow.CreateResult, error) {
		return prflow.New(b.options).Create(b.Context(), r.caller(), raw)
	}
}

// mustNotPromote has a person open a dry run, which is refused.
func (b *bench) mustNotPromote(code fault.Code, id string) error {
	b.Helper()
	return b.mustNotWrite(code, record.OutcomeRefused, func() (prflow.CreateResult, error) { return b.promote(id) })
}

func TestWhoIsNotLetInAnyMoreWritesNothing(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*bench, *revocable) func() (prflow.CreateResult, error){
		"while the gates run": func(b *bench, r *revocable) func() (prflow.CreateResult, error) {
			b.whileGatesRun(r)
			return b.createAs(r, createRequest(nil))
		},
		"while it waits for its files": func(b *bench, r *revocable) func() (prflow.CreateResult, error) {
			b.options.Step = func(step string) { r.revoked.Store(step == "reserved") }
			return b.createAs(r, createRequest(nil))
		},
		"with the very same change, which would be labelled": func(b *bench, r *revocable) func() (prflow.CreateResult, error) {
			b.mustOpen(createRequest(nil))
			b.whileGatesRun(r)
			return b.createAs(r, createRequest(nil))
		},
		"with a revision": func(b *bench, r *revocable) func() (prflow.CreateResult, error) {
			b.reviewed()
			b.whileGatesRun(r)
			return b.createAs(r, revising(nil))
		},
		"with a dry run that a person opens": func(b *bench, r *revocable) func() (prflow.CreateResult, error) {
			id := b.dryRun(createRequest(nil))
			b.whileGatesRun(r)
			return func() (prflow.CreateResult, error) { return prflow.New(b.options).Promote(b.Context(), r.caller(), id) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, r := newBench(t), &revocable{}
			b.mustNotWrite(fault.Unauthenticated, record.OutcomeRefused, prepare(b, r))
			b.options.Step = nil
			b.mustOpen(nth("other")) // somebody else may, at once
		})
	}
}

func TestACreationWhoseCallerNobodyKnowsAnythingOfWritesNothing(t *testing.T) {
	t.Parallel()
	b, r := newBench(t), &revocable{err: errors.New("the records are away")}
	b.whileGatesRun(r)
	b.mustNotWrite(fault.Internal, record.OutcomeFailed, b.createAs(r, createRequest(nil)))
}

func TestWhoIsNotLetInAnyMoreRecordsNoDryRun(t *testing.T) {
	t.Parallel()
	b, r := newBench(t), &revocable{}
	b.whileGatesRun(r)
	b.options.Authority.DryRun = true
	b.mustNotWrite(fault.Unauthenticated, record.OutcomeRefused, b.createAs(r, createRequest(nil)))
	if waiting, err := b.store.History.WaitingDryRuns(t.Context(), b.clock.Now().AddDate(0, 0, -1)); err != nil ||
		len(waiting) != 0 {
		t.Errorf("a person may open %+v, %v", waiting, err)
	}
}

// What an earlier creation has written, whose place this one has taken, is found and settled by the next process.
func TestACreationThatMayNotGoOnLeavesWhatItTookOverToBeSettled(t *testing.T) {
	t.Parallel()
	b, r := newBench(t), &revocable{}
	first := prflow.New(b.options)
	b.fake.SetLateness(10 * time.Minute) // it may still arrive
	b.fake.Script.FailBefore("OpenPullRequest", fault.New(fault.Timeout, "no answer"))
	if _, err := first.Create(t.Context(), agent, createRequest(nil)); fault.CodeOf(err) != fault.Timeout {
		t.Fatalf("got %v", err)
	}
	b.options.Step = func(step string) { r.revoked.Store(step == "reserved") }
	b.fake.Script.ForgetCalls()
	_, err := b.createAs(r, createRequest(nil))()
	if fault.CodeOf(err) != fault.Unauthenticated || b.fake.Script.Writes() != 0 {
		t.Fatalf("got %v after %v", err, b.fake.Script.Calls())
	}
	if left := b.mustHold(1); left[0].State != record.StateUnsettled {
		t.Fatalf("left %+v", left)
	}
	b.options.Step = nil
	result, err := b.create(createRequest(nil))
	if err != nil || len(b.open()) != 1 || result.Number != b.open()[0] {
		t.Errorf("then %+v, %v, open %v", result, err, b.open())
	}
}
