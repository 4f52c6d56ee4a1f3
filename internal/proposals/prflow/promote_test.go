package prflow_test

import (
	"context"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

var person = operation.Caller{Actor: record.Actor{Door: record.DoorREST, Client: "ann"}}

// dryRun records a dry run of the request, and returns its id.
func (b *bench) dryRun(raw []byte) string {
	b.Helper()
	b.options.Authority.DryRun = true
	defer func() { b.options.Authority.DryRun = false }()
	result, err := b.create(raw)
	if err != nil || !result.DryRun {
		b.Fatalf("no dry run: %+v, %v", result, err)
	}
	return result.RequestID
}

func (b *bench) promote(id string) (prflow.CreateResult, error) {
	return prflow.New(b.options).Promote(context.Background(), person, id)
}

func TestAPersonOpensWhatADryRunHasShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.dryRun(request(with("change_type", "check")))
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
	if err != nil {
		t.Fatal(err)
	}
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
		"the file exists by now": {func(b *bench) {
			b.fake.AddRepo("joe", "infra",
				map[string]string{"checks/inodes.md": "#\n"})
		}, fault.Conflict},
		"the scope was narrowed": {func(b *bench) {
			b.options.Authority.Policy = mustPolicy(b.T,
				"scope: {allow: [playbooks/*.md]}")
		}, fault.ScopeDenied},
		"the provider is gone": {func(b *bench) { b.options.Registry = gitprovider.NewRegistry(nil, nil, "", nil) },
			fault.ProviderUnresolved},
		"the repository left the list": {func(b *bench) {
			b.options.Authority.Policy = mustPolicy(b.T,
				"repositories: [joe/other]")
		}, fault.RepoNotAllowed},
		"another pull request came first": {func(b *bench) {
			b.mustOpen(request(with("files", []any{file("checks/inodes.md", "create", "# Other\n")})))
		}, fault.DuplicatePR},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id := b.dryRun(request(nil))
			c.change(b)
			b.fake.Script.ForgetCalls()
			before := len(b.attempts())
			_, err := b.promote(id)
			if fault.CodeOf(err) != c.code {
				t.Fatalf("got %v, want %s", err, c.code)
			}
			if b.fake.Script.Writes() != 0 || len(b.attempts()) != before+1 || b.attempts()[0].Code != c.code {
				t.Errorf("%d writes, the audit has %+v", b.fake.Script.Writes(), b.attempts()[0])
			}
		})
	}
}

func TestOnlyADryRunCanBePromoted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.promote("nothing"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown id: %v", err)
	}
	opened := b.mustOpen(request(nil))
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
	_, err := prflow.New(b.options).AtMost(1).Create(context.Background(), agent, request(nil))
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
		if _, err := one.Create(context.Background(), agent, request(nil)); err != nil {
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
