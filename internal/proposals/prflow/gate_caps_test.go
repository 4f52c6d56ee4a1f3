package prflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// nth is a request for a file of its own.
func nth(n string) []byte {
	return createRequest(titled("Check "+n, file("checks/"+n+".md", "create", n)))
}

// capsVerdict is the ruling of gate 9 in the record of an attempt.
func capsVerdict(a record.Attempt) record.Ruling {
	for _, v := range a.Verdicts {
		if v.Gate == record.GateCaps {
			return v.Ruling
		}
	}
	return ""
}

func TestParallelCallsNeverPassACap(t *testing.T) {
	t.Parallel()
	const calls, rounds = 32, 3
	for name, c := range map[string]struct {
		policy string
		want   int
	}{
		"the default":           {"", 10},
		"open, of everybody":    {"caps: {open_prs: 1}", 1},
		"open, of the tier":     {"tiers: {2: {open_prs: 3}}", 3},
		"made in the last hour": {"caps: {creations_per_hour: 2}", 2},
		"made, of the tier":     {"tiers: {2: {creations_per_hour: 4}}", 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.options.Authority.Policy = mustPolicy(t, c.policy)
			service := prflow.New(b.options)
			for round := range rounds {
				repo := fmt.Sprintf("round-%d", round)
				ref := b.fake.AddRepo("joe", repo, map[string]string{"checks/disk.md": "# Disk\n"})
				assertShare(t, b, c.want, inParallel(calls, func(call int) error {
					_, err := service.Create(context.Background(), agent, nthIn(repo, fmt.Sprint(call)))
					return err
				}))
				open, err := b.fake.ListOpen(t.Context(), ref, gitprovider.LabelOurs)
				if err != nil || len(open) != c.want {
					t.Fatalf("in round %d %d are open, want %d (%v)", round, len(open), c.want, err)
				}
			}
		})
	}
}

func nthIn(repo, n string) []byte {
	return createRequest(func(r map[string]any) {
		r["repo_name"], r["title"] = repo, "Check "+n
		r["files"] = []any{file("checks/"+n+".md", "create", n)}
	})
}

func inParallel(calls int, call func(int) error) []error {
	out := make([]error, calls)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { out[i] = call(i) })
	}
	all.Wait()
	return out
}

// assertShare holds that so many calls succeeded, and that the others were refused by gate 9 and told when to come
// back.
func assertShare(t *testing.T, b *bench, want int, given []error) {
	t.Helper()
	opened := 0
	for i, err := range given {
		if err == nil {
			opened++
			continue
		}
		e := fault.From(err)
		if e.Code != fault.LimitReached || e.RetryAfter <= 0 {
			t.Errorf("call %d: %v, retry after %s", i, err, e.RetryAfter)
		}
	}
	if opened != want {
		t.Errorf("%d of %d calls opened a pull request, want %d", opened, len(given), want)
	}
	for _, row := range b.attempts()[:min(len(given), 100)] {
		ruling := record.Deny
		if row.Outcome == record.OutcomeOpened {
			ruling = record.Pass
		}
		if capsVerdict(row) != ruling {
			t.Errorf("an attempt that was %s has the verdict %q", row.Outcome, capsVerdict(row))
		}
	}
}

func TestCapsGate(t *testing.T) {
	t.Parallel()
	t.Run("open pull requests", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Policy = mustPolicy(t, "caps: {open_prs: 2}")
		first := b.mustOpen(nth("one"))
		b.mustOpen(nth("two"))
		e, row := b.mustRefuse(nth("three"), fault.LimitReached)
		if e.RetryAfter != time.Hour || capsVerdict(row) != record.Deny {
			t.Errorf("retry after %s, verdict %q", e.RetryAfter, capsVerdict(row))
		}
		b.world().Merge(first.Number)
		b.mustOpen(nth("three"))
	})
	t.Run("creations per hour", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Policy = mustPolicy(t, "caps: {creations_per_hour: 2}")
		b.world().Merge(b.mustOpen(nth("one")).Number)
		b.clock.advance(10 * time.Minute)
		b.world().Merge(b.mustOpen(nth("two")).Number)
		b.clock.advance(10 * time.Minute)
		e, _ := b.mustRefuse(nth("three"), fault.LimitReached)
		if e.RetryAfter != 40*time.Minute { // when the first one is an hour old
			t.Errorf("retry after %s", e.RetryAfter)
		}
		b.clock.advance(40*time.Minute + time.Second)
		b.mustOpen(nth("three"))
	})
	t.Run("a cap of zero lets nothing through", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Policy = mustPolicy(t, "caps: {open_prs: 0}")
		b.mustRefuse(nth("one"), fault.LimitReached)
	})
	t.Run("a dry run is refused as well, and counts what is being made", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Policy, b.options.Authority.DryRun = mustPolicy(t, "caps: {open_prs: 1}"), true
		_, err := b.create(nth("one"))
		b.must(err)
		b.hold("other", "checks/other.md")
		e, row := b.mustRefuse(nth("one"), fault.LimitReached)
		if !strings.Contains(e.Message, "1 of them are being made") || capsVerdict(row) != record.Deny {
			t.Errorf("%v, %+v", e, row)
		}
	})
}

// hold plays another process that works on a proposal in the repository of the requests.
func (b *bench) hold(id, path string) {
	b.Helper()
	taken, err := b.store.Ledger.Reserve(context.Background(), heldProposal(b, id, path), record.Claim{})
	if err != nil || taken != nil {
		b.Fatalf("reserve: %v, %v", taken, err)
	}
}

func heldProposal(b *bench, id, path string) record.Proposal {
	return record.Proposal{
		ID: id, CreatedAt: b.clock.Now(), Provider: "fake", Owner: "joe", Repo: "infra", Base: "main",
		BaseCommit: b.tip("main"),
		Title:      "Held", Digest: "other",
		Files:    []gitprovider.FileChange{{Path: path, Action: gitprovider.ActionCreate, Content: "x"}},
		Progress: record.Progress{State: record.StateReserved, Branch: "claude-ops/fix/held-" + id},
	}
}

func TestWhatIsBeingMadeTakesAPlace(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"caps: {open_prs: 1}", "caps: {creations_per_hour: 1}"} {
		b := newBench(t)
		b.options.Authority.Policy = mustPolicy(t, policy)
		b.hold("other", "checks/other.md")
		e, _ := b.mustRefuse(nth("one"), fault.LimitReached)
		if e.RetryAfter <= 0 || e.RetryAfter > time.Minute {
			t.Errorf("%s: what is being made is known soon, and it says %s", policy, e.RetryAfter)
		}
		if err := b.store.Ledger.Finish(t.Context(), "other", record.Progress{State: record.StateFailed},
			record.Attempt{}); err != nil {
			t.Fatal(err)
		}
		b.mustOpen(nth("one")) // what failed has given its place back
	}
}

func TestWhatFailedGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "caps: {open_prs: 1, creations_per_hour: 1}")
	b.fake.Script.FailBefore(forgetest.MethodCommit, fault.New(fault.RateLimited, "slow down"))
	b.mustFail(nth("one"), fault.RateLimited)
	b.mustOpen(nth("two"))
}

// A process that was killed holds its place until somebody needs it.
func TestWhatAKilledProcessLeftGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "caps: {open_prs: 1, creations_per_hour: 1}")
	service := prflow.New(b.options)
	create := func(raw []byte) error {
		_, err := service.Create(context.Background(), agent, raw)
		return err
	}
	// looks for what is left once
	if err := create(createRequest(with("title", ""))); fault.CodeOf(err) != fault.InvalidArgument {
		t.Fatal(err)
	}
	b.die(heldProposal(b, "dead", "checks/dead.md"))
	b.must(create(nth("one")))
	if row := b.attempts()[1]; row.Action != record.ActionSettle || row.RequestID != "dead" {
		t.Errorf("the audit has %+v", row)
	}
}

// The provider lists a pull request before the ledger knows of it: its mark tells that they are one.
func TestAPullRequestThatIsNotRecordedYetCountsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "caps: {open_prs: 2}")
	begun, release := make(chan struct{}), make(chan struct{})
	first := b.options
	first.Step = func(step string) {
		if step == "opened" {
			close(begun)
			<-release
		}
	}
	ended := make(chan error)
	go func() {
		_, err := prflow.New(first).Create(context.Background(), agent, nth("one"))
		ended <- err
	}()
	<-begun
	b.mustOpen(nth("two"))
	b.mustRefuse(nth("three"), fault.LimitReached)
	close(release)
	b.must(<-ended)
	b.mustRefuse(nth("three"), fault.LimitReached)
}

// Callers of one and the same change get its pull request, also when no other would have a place.
func TestTheSameChangeInParallelIsNotRefusedByACap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "caps: {open_prs: 1, creations_per_hour: 1}")
	// those who wait do not move the clock
	b.options.Clock.Sleep = func(context.Context, time.Duration) { time.Sleep(time.Millisecond) }
	service := prflow.New(b.options)
	if err := errors.Join(inParallel(16, func(int) error {
		_, err := service.Create(context.Background(), agent, nth("one"))
		return err
	})...); err != nil {
		t.Error(err)
	}
	if open := b.open(); !slices.Equal(open, []int{1}) {
		t.Errorf("open are %v", open)
	}
}
