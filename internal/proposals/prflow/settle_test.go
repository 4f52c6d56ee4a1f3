package prflow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// newLateBench is a bench whose host may act on a write after its caller has given up.
func newLateBench(t *testing.T) *bench {
	b := newBench(t)
	b.fake.SetLateness(gitprovider.ForgeLateness)
	return b
}

// leaveABranch proposes, and gets no clear answer to the request for the pull request, which the host has not seen.
func (b *bench) leaveABranch() *fault.Error {
	b.Helper()
	b.fake.Script.FailBefore(forgetest.MethodOpenPullRequest, fault.New(fault.Timeout, "the host did not answer in time"))
	_, err := b.create(createRequest(nil))
	if fault.CodeOf(err) != fault.Timeout || b.tip(plainBranch) == "" {
		b.Fatalf("got %v, the branch is at %q", err, b.tip(plainBranch))
	}
	return fault.From(err)
}

// ours are the branches below claude-ops/.
func (b *bench) ours() (names []string) {
	for branch := range b.world().Branches() {
		if strings.HasPrefix(branch, gitprovider.BranchPrefix) {
			names = append(names, branch)
		}
	}
	slices.Sort(names)
	return names
}

func TestAfterAnUnclearAnswerNothingIsUndoneAndTheCallerIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	e := b.leaveABranch()
	if !strings.Contains(e.Message, "identical call") || !e.Retryable() || e.RetryAfter <= 0 {
		t.Errorf("the answer is %+v", e)
	}
	if left := b.mustHold(1); left[0].State != record.StateUnsettled ||
		b.fake.Script.Count(forgetest.MethodDeleteBranch) != 0 {
		t.Errorf("left %+v; calls %v", left, b.fake.Script.Calls())
	}
	tip := b.tip(plainBranch)
	result := b.mustOpen(createRequest(nil))
	if result.Branch != plainBranch || result.Commit != tip || len(b.ours()) != 1 {
		t.Errorf("%+v, branches %v, want the branch that was left, at %s", result, b.ours(), tip)
	}
	b.mustHoldNothing()
}

func TestAnotherChangeWaitsUntilNothingCanArriveAnyMore(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.leaveABranch()
	other := createRequest(files(file("checks/inodes.md", "create", "# Inodes, otherwise\n")))
	e, _ := b.mustRefuse(other, fault.LimitReached)
	if e.RetryAfter < 5*time.Minute || e.RetryAfter > 20*time.Minute || b.tip(plainBranch) == "" {
		t.Errorf("retry after %s, the branch is at %q", e.RetryAfter, b.tip(plainBranch))
	}
	settled, err := prflow.New(b.options).Resume(t.Context())
	if err != nil || len(settled) != 1 || settled[0].Late == "" || settled[0].Error != "" || b.tip(plainBranch) == "" {
		t.Errorf("settled %+v, %v", settled, err)
	}
	b.clock.advance(e.RetryAfter)
	result := b.mustOpen(other)
	if len(b.ours()) != 1 || b.tip(result.Branch) != result.Commit || result.Branch == plainBranch {
		t.Errorf("%+v, branches %v", result, b.ours())
	}
	b.mustVerify()
}

func TestABranchIsTakenOverOnlyIfItIsExactlyOurChangeOnTheBase(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		meet  func(b *bench)
		taken bool
	}{
		{"it is", func(*bench) {}, true},
		{"the records and the key are lost", func(b *bench) {
			b.loseState()
			b.options.Proof.Key = func() ([]byte, error) { return []byte("another key for tests, of 32 bytes"), nil }
		}, true},
		{"made by others, without a mark", func(b *bench) {
			b.loseState()
			b.world().DeleteBranch(plainBranch)
			b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n"})
		}, true},
		{"a person has added a commit", func(b *bench) {
			b.world().Push(plainBranch, providertest.File{Path: "checks/disk.md", Content: "# Disk, by a person\n"})
		}, false},
		{"another file is in it", func(b *bench) {
			b.loseState()
			b.world().DeleteBranch(plainBranch)
			b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n"},
				providertest.File{Path: "src/evil.go", Content: "package evil\n"})
		}, false},
		{"the content is another", func(b *bench) {
			b.loseState()
			b.world().DeleteBranch(plainBranch)
			b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "# Inodes, otherwise\n"})
		}, false},
		{"the base has moved", func(b *bench) {
			b.world().Push("main",
				providertest.File{Path: "README.md", Content: "new\n"})
		}, false},
		{"a person has closed its pull request long ago", func(b *bench) {
			b.loseState()
			b.world().Close(b.world().OpenPR(plainBranch, "Somebody's"))
			b.clock.advance(25 * time.Hour)
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newLateBench(t)
			b.leaveABranch()
			row.meet(b)
			tip := b.tip(plainBranch)
			result := b.mustOpen(createRequest(nil))
			if b.tip(plainBranch) != tip {
				t.Errorf("the branch has moved from %s to %s", tip, b.tip(plainBranch))
			}
			if taken := result.Branch == plainBranch && result.Commit == tip; taken != row.taken ||
				b.tip(result.Branch) != result.Commit {
				t.Errorf("taken over: %t, want %t: %+v", taken, row.taken, result)
			}
			if len(b.open()) != 1 {
				t.Errorf("open %v", b.open())
			}
		})
	}
}

func TestACommitSaysWhereItComesFrom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	result := b.mustOpen(createRequest(nil))
	message := b.world().Message(result.Commit)
	if !strings.HasPrefix(message, "Check inodes, too\n\n") || !strings.Contains(message, "\nClaude-Ops-Change: v1 ") ||
		!strings.Contains(message, result.RequestID) {
		t.Errorf("the message is %q", message)
	}
}

func TestWhoeverWaitsForASlowWriteHearsOfIt(t *testing.T) {
	t.Parallel()
	for _, method := range []string{forgetest.MethodCommit, forgetest.MethodOpenPullRequest} {
		t.Run(method, func(t *testing.T) {
			b := newBench(t)
			b.options.ProgressEvery = time.Millisecond
			_, release := b.fake.Script.Block(method)
			var mu sync.Mutex
			var once sync.Once
			var phases []string
			heard := make(chan struct{})
			caller := agent
			caller.Progress = func(phase string) {
				mu.Lock()
				defer mu.Unlock()
				phases = append(phases, phase)
				if strings.Contains(phase, " at fake, still running after ") {
					once.Do(func() { close(heard) })
				}
			}
			done := make(chan error, 1)
			go func() {
				_, err := prflow.New(b.options).Create(context.Background(), caller, createRequest(nil))
				done <- err
			}()
			select {
			case <-heard:
			case <-time.After(time.Minute):
				t.Error("nothing was heard for a minute")
			}
			release()
			if err := <-done; err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(phases, "opening the pull request at fake") {
				t.Errorf("heard %v", phases)
			}
		})
	}
}

// What was left elsewhere is not this call's business: at a host that is silent each look takes as long as it may.
func TestAProposalWaitsForNothingThatWasLeftInAnotherRepository(t *testing.T) {
	b := newLateBench(t)
	b.leaveABranch()
	b.fake.Script.ForgetCalls()
	began := b.clock.Now()
	b.mustFail(createRequest(with("repo_name", "absent")), fault.NotFound)
	if n := b.fake.Script.Count(forgetest.MethodFindByHead); n != 0 || b.clock.Now().Sub(began) != 0 {
		t.Errorf("%d looks, %s passed; calls %v", n, b.clock.Now().Sub(began), b.fake.Script.Calls())
	}
	if left := b.mustHold(1); left[0].State != record.StateUnsettled {
		t.Errorf("left %+v", left)
	}
}

// Each of those that were left may take long; a call does not wait for all of them.
func TestAProposalWaitsForWhatWasLeftInItsRepositoryForAWhileOnly(t *testing.T) {
	b := newLateBench(t)
	const left = 8
	for i := range left {
		p := record.Proposal{ID: fmt.Sprint("left-", i), Provider: "fake", Owner: "joe", Repo: "infra", Base: "main",
			Files:    []gitprovider.FileChange{{Path: fmt.Sprintf("checks/%d.md", i), Action: gitprovider.ActionCreate}},
			Progress: record.Progress{Branch: fmt.Sprint("claude-ops/fix/", i)}}
		if taken, err := b.store.Ledger.Reserve(t.Context(), p, record.Claim{}); err != nil || taken != nil {
			t.Fatal(taken, err)
		}
		b.must(b.store.Ledger.Advance(t.Context(), p.ID, record.Progress{State: record.StateUnsettled}))
	}
	b.options.Clock.Sleep = func(context.Context, time.Duration) { b.clock.advance(2 * time.Second) } // for each look
	b.fake.Script.ForgetCalls()
	b.mustOpen(createRequest(nil))
	if n := b.fake.Script.Count(forgetest.MethodFindByHead); n < 1 || n > 4 {
		t.Errorf("%d looks for the %d that were left: %v", n, left, b.fake.Script.Calls())
	}
}

func repositories() []record.RepoName {
	return []record.RepoName{
		{Provider: "fake", Owner: "joe", Name: "infra"}, {Provider: "fake", Owner: "joe", Name: "gone"},
		{Provider: "gitea", Owner: "joe", Name: "infra"},
	}
}

func (b *bench) sweep(w *prflow.Sweeper) []prflow.Swept {
	b.Helper()
	swept, err := w.Sweep(b.Context(), repositories())
	b.must(err)
	return swept
}

func TestABranchWithoutRecordAndPullRequestIsRemovedAfterAnHour(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.leaveABranch()
	b.loseState()
	sweeper := prflow.New(b.options).NewSweeper()
	b.clock.advance(59 * time.Minute)
	if swept := b.sweep(sweeper); len(swept) != 0 || b.tip(plainBranch) == "" {
		t.Errorf("too early: %+v", swept)
	}
	b.clock.advance(2 * time.Minute)
	swept := b.sweep(sweeper)
	if len(swept) != 1 || swept[0].Branch != plainBranch || swept[0].Error != "" || b.tip(plainBranch) != "" {
		t.Errorf("swept %+v, the branch is at %q", swept, b.tip(plainBranch))
	}
	row := b.attempts()[0]
	if len(b.attempts()) != 1 || row.Action != record.ActionSettle || row.Branch != plainBranch ||
		row.Outcome != record.OutcomeFailed {
		t.Errorf("the audit has %+v", b.attempts())
	}
	if swept := b.sweep(sweeper); len(swept) != 0 {
		t.Errorf("again: %+v", swept)
	}
	b.mustVerify()
}

func TestTheSweepLeavesWhatMayBeSomebodys(t *testing.T) {
	t.Parallel()
	inodes := providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n"}
	for _, row := range []struct {
		name string
		meet func(b *bench)
	}{
		{"somebody pushes at the last moment", func(b *bench) {
			b.fake.Script.Before(forgetest.MethodDeleteBranch, func() {
				b.world().Push(plainBranch, providertest.File{Path: "notes.md", Content: "n\n"})
			})
		}},
		{"a pull request is open", func(b *bench) { b.world().OpenPR(plainBranch, "Somebody's") }},
		{"a person has closed its pull request",
			func(b *bench) { b.world().Close(b.world().OpenPR(plainBranch, "Somebody's")) }},
		{"it was merged", func(b *bench) { b.world().Merge(b.world().OpenPR(plainBranch, "Somebody's")) }},
		{"a person has added a commit",
			func(b *bench) { b.world().Push(plainBranch, providertest.File{Path: "notes.md", Content: "n\n"}) }},
		{"a person has amended the content",
			func(b *bench) { b.amend(providertest.File{Path: "checks/inodes.md", Content: "# Better\n"}) }},
		{"a person has added a file by amending",
			func(b *bench) { b.amend(inodes, providertest.File{Path: "notes.md", Content: "n\n"}) }},
		{"it has no mark", func(b *bench) {
			b.world().DeleteBranch(plainBranch)
			b.world().Push(plainBranch, inodes)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newLateBench(t)
			b.leaveABranch()
			b.loseState()
			row.meet(b)
			sweeper := prflow.New(b.options).NewSweeper()
			for range 3 {
				b.clock.advance(2 * time.Hour)
				if swept := b.sweep(sweeper); len(swept) != 0 || b.tip(plainBranch) == "" {
					t.Errorf("swept %+v", swept)
				}
			}
		})
	}
	t.Run("it is an unsettled proposal's", func(t *testing.T) {
		b := newLateBench(t)
		b.leaveABranch()
		b.clock.advance(2 * time.Hour)
		if swept := b.sweep(prflow.New(b.options).NewSweeper()); len(swept) != 0 || b.tip(plainBranch) == "" {
			t.Errorf("swept %+v", swept)
		}
	})
}

// amend replaces the commit of the branch by one with the same message.
func (b *bench) amend(files ...providertest.File) {
	b.Helper()
	b.fake.People.Amend(infra, plainBranch, b.world().Message(b.tip(plainBranch)), files...)
}

func TestABareBranchIsRemovedWhenItWasSeenAnHourAgo(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.fake.People.PointBranch(infra, plainBranch, b.tip("main"))
	b.world().Push("feature/x", providertest.File{Path: "x.md", Content: "x\n"})
	other := "claude-ops/fix/a-persons"
	b.world().Push(other, providertest.File{Path: "notes.md", Content: "n\n"})
	sweeper := prflow.New(b.options).NewSweeper()
	for range 2 {
		if swept := b.sweep(sweeper); len(swept) != 0 {
			t.Errorf("too early: %+v", swept)
		}
		b.clock.advance(31 * time.Minute)
	}
	if swept := b.sweep(sweeper); len(swept) != 1 || b.tip(plainBranch) != "" || b.tip(other) == "" ||
		b.tip("feature/x") == "" {
		t.Errorf("swept %+v, branches %v", swept, b.world().Branches())
	}
}

func TestTheSweepTellsOfARepositoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.fake.Script.FailBefore(forgetest.MethodOurBranches, down())
	if swept := b.sweep(prflow.New(b.options).NewSweeper()); len(swept) != 1 || !strings.Contains(swept[0].Error, "down") {
		t.Errorf("swept %+v", swept)
	}
}

func TestRepositoriesOfTheAllowlistAreKnownByName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rules := policy.Default()
	rules.Targets.Repositories = []policy.RepoPattern{
		{Owner: "joe", Name: "infra"}, {Owner: "joe", Name: "*"}, {Provider: "fake", Owner: "ann", Name: "home"},
		{Provider: "fake", Owner: "Joe", Name: "Infra"},
	}
	got := prflow.KnownRepositories([]record.RepoName{{Provider: "fake", Owner: "joe", Name: "web"}}, rules,
		prflow.New(b.options).Reader().ProviderOf)
	if fmt.Sprint(got) != "[fake:ann/home fake:joe/infra fake:joe/web]" {
		t.Errorf("got %v", got)
	}
}
