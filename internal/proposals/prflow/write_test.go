package prflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// mustBeClean fails the test unless nothing of a failed creation is left: no branch, no pull request, no reservation.
func (b *bench) mustBeClean(branch string) {
	b.Helper()
	if tip := b.tip(branch); tip != "" {
		b.Errorf("the branch %s is left at %s", branch, tip)
	}
	if open := b.open(); len(open) != 0 {
		b.Errorf("open pull requests %v", open)
	}
}

const plainBranch = "claude-ops/fix/check-inodes-too"

func down() *fault.Error { return fault.New(fault.UpstreamError, "the host is down") }

func TestADefiniteFailureLeavesNothingAndARetryWorks(t *testing.T) {
	t.Parallel()
	for _, method := range []string{forgetest.MethodCommit, forgetest.MethodOpenPullRequest} {
		for _, code := range []fault.Code{fault.UpstreamError, fault.Conflict, fault.RateLimited, fault.NotFound} {
			t.Run(fmt.Sprintf("%s fails with %s", method, code), func(t *testing.T) {
				b := newBench(t)
				b.fake.Script.FailBefore(method, fault.New(code, "no"))
				if method == forgetest.MethodCommit && code == fault.Conflict { // which is tried once more
					b.fake.Script.FailBefore(method, fault.New(code, "no"))
				}
				_, err := b.create(createRequest(nil))
				if fault.CodeOf(err) != code {
					t.Fatalf("got %v", err)
				}
				b.mustBeClean(plainBranch)
				if row := b.attempts()[0]; row.Code != code || len(b.attempts()) != 1 {
					t.Errorf("the audit has %+v", b.attempts())
				}
				b.mustOpen(createRequest(nil))
				if open := b.open(); len(open) != 1 {
					t.Errorf("open %v", open)
				}
			})
		}
	}
}

func TestAnAmbiguousFailureIsSettledByLooking(t *testing.T) {
	t.Parallel()
	for _, method := range []string{forgetest.MethodCommit, forgetest.MethodOpenPullRequest} {
		t.Run(method+" acts and then fails", func(t *testing.T) {
			b := newBench(t)
			b.fake.Script.FailAfter(method)
			result := b.mustOpen(createRequest(nil))
			if b.tip(result.Branch) != result.Commit || len(b.open()) != 1 || b.fake.Script.Count(method) != 1 {
				t.Errorf("result %+v, open %v, calls %v", result, b.open(), b.fake.Script.Calls())
			}
		})
		t.Run(method+" acts, fails, and nobody can look: the next request settles it", func(t *testing.T) {
			b := newBench(t)
			b.fake.Script.FailAfter(method)
			look := map[string]string{
				forgetest.MethodCommit: forgetest.MethodBranchTip, forgetest.MethodOpenPullRequest: forgetest.MethodFindByHead,
			}[method]
			b.fake.Script.FailBefore(look, down())
			b.mustFail(createRequest(nil), fault.UpstreamError)
			result, err := b.create(createRequest(nil))
			if err != nil || result.Number == 0 || len(b.open()) != 1 {
				t.Fatalf("the retry gave %+v, %v; open %v", result, err, b.open())
			}
			if ours := b.ours(); len(ours) != 1 {
				t.Errorf("branches of ours: %v", ours)
			}
			b.mustVerify()
		})
	}
	t.Run("the host was between branch and commit: the next request removes the bare branch", func(t *testing.T) {
		b := newBench(t)
		b.fake.Script.Before(forgetest.MethodCommit, func() { b.fake.People.PointBranch(infra, plainBranch, b.tip("main")) })
		b.fake.Script.FailBefore(forgetest.MethodCommit, down())
		b.mustFail(createRequest(nil), fault.UpstreamError)
		b.mustOpen(createRequest(nil))
		if len(b.world().Branches()) != 2 || b.tip(plainBranch) == b.tip("main") {
			t.Errorf("branches %v", b.world().Branches())
		}
	})
	t.Run("a branch that somebody else made meanwhile is not taken for ours", func(t *testing.T) {
		b := newBench(t)
		b.fake.Script.Before(forgetest.MethodCommit, func() {
			b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "theirs"})
		})
		b.fake.Script.FailBefore(forgetest.MethodCommit, down())
		if _, err := b.create(createRequest(nil)); err == nil {
			t.Fatal("the other's branch was used")
		}
		if b.tip(plainBranch) == "" {
			t.Error("the other's branch was deleted")
		}
	})
	t.Run("the branch cannot be undone: the next request undoes it", func(t *testing.T) {
		b := newBench(t)
		b.fake.Script.FailBefore(forgetest.MethodOpenPullRequest, fault.New(fault.NotFound, "no"))
		b.fake.Script.FailBefore(forgetest.MethodDeleteBranch, down())
		b.mustFail(createRequest(nil), fault.NotFound)
		if b.tip(plainBranch) == "" {
			t.Fatal("this test needs the branch to be left")
		}
		b.mustOpen(createRequest(nil))
		if b.tip(plainBranch) != "" && len(b.world().Branches()) != 2 {
			t.Errorf("branches %v", b.world().Branches())
		}
	})
	t.Run("a branch that a person has pushed to meanwhile is not undone", func(t *testing.T) {
		b := newBench(t)
		b.fake.Script.Before(forgetest.MethodOpenPullRequest, func() {
			b.world().Push(plainBranch, providertest.File{Path: "checks/more.md", Content: "a person's"})
		})
		b.fake.Script.FailBefore(forgetest.MethodOpenPullRequest, fault.New(fault.NotFound, "no"))
		if _, err := b.create(createRequest(nil)); err == nil {
			t.Fatal("no error")
		}
		if b.tip(plainBranch) == "" {
			t.Error("the person's work was deleted")
		}
	})
}

func TestABranchNameThatIsTakenAtTheLastMomentGetsADigest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fake.Script.Before(forgetest.MethodCommit, func() {
		b.world().Push(plainBranch, providertest.File{Path: "notes.txt", Content: "a person's"})
	})
	result := b.mustOpen(createRequest(nil))
	if !strings.HasPrefix(result.Branch, strings.TrimSuffix(plainBranch, "too")) ||
		b.tip(result.Branch) != result.Commit ||
		!strings.Contains(b.body(result.Number), "claude-ops:v1") {
		t.Errorf("result %+v", result)
	}
	b.loseState()
	b.mustReuse(createRequest(nil), result.Number) // the mark names the branch that was taken
}

func TestABaseThatMovesBetweenLookAndWriteIsAConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fake.Script.Before(forgetest.MethodCommit, func() {
		b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: "# Disk, by a person\n"})
	})
	_, err := b.create(createRequest(nil))
	if fault.CodeOf(err) != fault.Conflict {
		t.Fatalf("got %v", err)
	}
	b.mustBeClean(plainBranch)
	b.mustOpen(createRequest(nil))
}

func TestACancelledCallerStopsBeforeTheReservationAndNotAfter(t *testing.T) {
	t.Parallel()
	t.Run("before: nothing happens, and the attempt is recorded", func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		b.fake.Script.Before(forgetest.MethodSnapshot, cancel)
		_, err := prflow.New(b.options).Create(ctx, agent, createRequest(nil))
		if fault.CodeOf(err) != fault.Timeout || b.fake.Script.Writes() != 0 {
			t.Errorf("got %v, %d writes", err, b.fake.Script.Writes())
		}
		if rows := b.attempts(); len(rows) != 1 || rows[0].Outcome != record.OutcomeFailed {
			t.Errorf("the audit has %+v", rows)
		}
	})
	t.Run("after: the creation is finished", func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		b.fake.Script.Before(forgetest.MethodCommit, cancel)
		result, err := prflow.New(b.options).Create(ctx, agent, createRequest(nil))
		if err != nil || result.Number == 0 || len(b.open()) != 1 {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}

func TestConcurrentIdenticalRequestsMakeOnePullRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const callers = 12
	b.options.Clock.Sleep = func(ctx context.Context, _ time.Duration) { <-time.After(time.Millisecond) }
	service := prflow.New(b.options)
	results := make([]prflow.CreateResult, callers)
	b.must(errors.Join(inParallel(callers, func(i int) (err error) {
		results[i], err = service.Create(context.Background(), agent, createRequest(nil))
		return err
	})...))
	opened := 0
	for i := range callers {
		if results[i].Number != results[0].Number || results[i].Branch != plainBranch {
			t.Errorf("caller %d got %+v", i, results[i])
		}
		if !results[i].Reused {
			opened++
		}
	}
	if opened != 1 || len(b.open()) != 1 || len(b.attempts()) != callers {
		t.Errorf("%d opened, open %v, %d audit rows", opened, b.open(), len(b.attempts()))
	}
	b.mustVerify()
}

func TestConcurrentOverlappingRequestsMakeOnePullRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const callers = 12
	b.options.Clock.Sleep = func(ctx context.Context, _ time.Duration) { <-time.After(time.Millisecond) }
	service := prflow.New(b.options)
	opened := 0
	for i, err := range inParallel(callers, func(i int) error {
		_, err := service.Create(context.Background(), agent, createRequest(titled(fmt.Sprint("Change ", i),
			file("checks/shared.md", "create", fmt.Sprint(i)), file(fmt.Sprintf("checks/%d.md", i), "create", "x"))))
		return err
	}) {
		if err == nil {
			opened++
		} else if fault.CodeOf(err) != fault.DuplicatePR {
			t.Errorf("caller %d: %v", i, err)
		}
	}
	if opened != 1 || len(b.open()) != 1 {
		t.Errorf("%d opened, open %v", opened, b.open())
	}
	b.mustVerify()
}

func TestWhatADeadProcessLeftIsSettledByTheNextRequest(t *testing.T) {
	t.Parallel()
	proposal := func(b *bench) record.Proposal {
		return record.Proposal{
			ID: "dead", CreatedAt: b.clock.Now(), Door: record.DoorMCP, Caller: "dead", Tier: 2, Provider: "fake", Owner: "joe",
			Repo: "infra",
			Base: "main", BaseCommit: b.tip("main"), ChangeType: "fix", Title: "Check inodes, too", Body: "x", Digest: "d",
			Files:    []gitprovider.FileChange{{Path: "checks/inodes.md", Action: "create", Content: "# Inodes\n"}},
			Progress: record.Progress{State: record.StateReserved, Branch: plainBranch},
		}
	}
	reserve := func(b *bench) { b.die(proposal(b)) }
	t.Run("it died before it wrote", func(t *testing.T) {
		b := newBench(t)
		reserve(b)
		b.mustOpen(createRequest(nil))
	})
	t.Run("it died after the branch: the branch is removed and made anew", func(t *testing.T) {
		b := newBench(t)
		reserve(b)
		dead := b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n"})
		b.clock.advance(time.Hour)
		result := b.mustOpen(createRequest(nil))
		if b.tip(plainBranch) == dead && result.Branch != plainBranch {
			t.Error("the dead process's branch is left")
		}
		branches := b.world().Branches()
		if len(branches) != 2 {
			t.Errorf("branches %v", branches)
		}
	})
	t.Run("it died between branch and commit: the bare branch is removed", func(t *testing.T) {
		b := newBench(t)
		reserve(b)
		b.fake.People.PointBranch(infra, plainBranch, b.tip("main"))
		b.mustOpen(createRequest(nil))
		if len(b.world().Branches()) != 2 || b.tip(plainBranch) == b.tip("main") {
			t.Errorf("branches %v", b.world().Branches())
		}
	})
	t.Run("it died after the pull request: that one is reused", func(t *testing.T) {
		b := newBench(t)
		reserve(b)
		b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n"})
		number := b.world().OpenPR(plainBranch, "Check inodes, too", "claude-ops")
		b.clock.advance(time.Hour)
		b.mustReuse(createRequest(nil), number)
		b.mustRefuse(createRequest(files(file("checks/inodes.md", "create", "other"))), fault.DuplicatePR)
	})
	t.Run("it died before it wrote, under the branch name of a pull request that was merged long ago", func(t *testing.T) {
		b := newBench(t)
		old := b.mustOpen(createRequest(nil))
		b.world().Merge(old.Number)
		b.world().DeleteBranch(old.Branch)
		b.clock.advance(time.Hour)
		p := proposal(b)
		p.Files = []gitprovider.FileChange{{Path: "checks/inodes.md", Action: "update", Content: "# Inodes, again\n"}}
		b.die(p)
		result := b.mustOpen(createRequest(files(file("checks/inodes.md", "update", "# Inodes, again\n"))))
		if result.Number == old.Number {
			t.Errorf("the old pull request was taken for the new one: %+v", result)
		}
		for _, row := range b.attempts() {
			if row.Action == "create_pr.settle" && row.Outcome != record.OutcomeFailed {
				t.Errorf("the dead proposal was settled as %+v", row)
			}
		}
	})
	t.Run("while it may still live, others wait and are then told to come back", func(t *testing.T) {
		b := newBench(t)
		if taken, err := b.store.Ledger.Reserve(context.Background(), proposal(b), record.Claim{}); err != nil ||
			taken != nil {
			t.Fatalf("reserve: %v, %v", taken, err)
		}
		b.clock.advance(time.Hour) // age alone is not a reason to take it over
		e, _ := b.mustRefuse(createRequest(nil), fault.LimitReached)
		if e.RetryAfter <= 0 {
			t.Errorf("retry after %s", e.RetryAfter)
		}
	})
}

// brokenLedger fails every call.
type brokenLedger struct{ prflow.Ledger }

func (brokenLedger) Record(context.Context, record.Attempt, *record.Proposal, ...record.Notice) error {
	return fault.New(fault.Internal, "the state folder /state cannot be written; set CLAUDEOPS_STATE_DIR")
}

func (brokenLedger) Opened(context.Context, string) ([]record.Proposal, error) {
	return nil, fault.New(fault.Internal, "the state folder /state cannot be written; set CLAUDEOPS_STATE_DIR")
}

func TestWithoutARecordNothingIsProposed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Ledger = brokenLedger{}
	for name, raw := range map[string][]byte{"a good request": createRequest(nil),
		"a refused one": createRequest(files(file("README.md", "update", "x")))} {
		t.Run(name, func(t *testing.T) {
			_, err := b.create(raw)
			if fault.CodeOf(err) != fault.Internal || !strings.Contains(err.Error(), "CLAUDEOPS_STATE_DIR") ||
				b.fake.Script.Writes() != 0 {
				t.Errorf("got %v, %d writes", err, b.fake.Script.Writes())
			}
			if id := operation.AttemptIDOf(err); id != "" || operation.RequestIDOf(err) == "" {
				t.Errorf("nothing was recorded, and the error names the attempt %q", id)
			}
		})
	}
}

// secrets searches as a test says, and hides our own token alone.
type secrets func() ([]textscan.Secret, error)

func (s secrets) Secrets(context.Context, string, string) ([]textscan.Secret, error) { return s() }

func (secrets) Spread([]string) []int { return nil }

func (secrets) Hide(text string) string { return text }

func (secrets) Redact(text string) string { return strings.ReplaceAll(text, ownToken, "[redacted]") }

// noSecrets finds nothing.
func noSecrets() secrets { return func() ([]textscan.Secret, error) { return nil, nil } }

func TestWhenSecretsCannotBeSearchedForNothingIsProposedAndNothingRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Secrets = secrets(func() ([]textscan.Secret, error) {
		return nil, fmt.Errorf("rules not loaded: %s", ownToken)
	})
	e, row := b.mustRefuse(createRequest(nil), fault.Internal)
	if strings.Contains(e.Message, ownToken) || row.Title != prflow.Withheld || row.Paths[0] != prflow.Withheld {
		t.Errorf("%v, row %+v", e, row)
	}
}

func TestAPanicIsRecordedAndItsTextStaysInside(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Secrets = secrets(func() ([]textscan.Secret, error) { panic("boom") })
	if e, _ := b.mustRefuse(createRequest(nil), fault.Internal); strings.Contains(e.Message, "boom") {
		t.Errorf("%v", e)
	}
}

// A rival may make the branch and withdraw it before we look: the name is tried once more.
func TestABranchThatWasInTheWayAndVanishedIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	taken := fault.New(fault.Conflict, "the branch exists already")
	b := newBench(t)
	b.fake.Script.FailBefore(forgetest.MethodCommit, taken)
	if result := b.mustOpen(createRequest(nil)); result.Branch != plainBranch {
		t.Errorf("the branch is %s", result.Branch)
	}
	b = newBench(t)
	b.fake.Script.FailBefore(forgetest.MethodCommit, taken)
	b.fake.Script.FailBefore(forgetest.MethodCommit, taken)
	b.mustFail(createRequest(nil), fault.Conflict)
}

// It may also withdraw the branch after we have seen it and before we read what it holds.
func TestABranchThatVanishesWhileItIsReadIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	for _, method := range []string{forgetest.MethodReadCommit, forgetest.MethodSnapshot} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.fake.Script.Before(forgetest.MethodCommit, func() {
				b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n"})
				b.fake.Script.Before(method, func() { b.world().DeleteBranch(plainBranch) })
				b.fake.Script.FailBefore(method, fault.New(fault.NotFound, "joe/infra has no branch %s", plainBranch))
			})
			if result := b.mustOpen(createRequest(nil)); result.Branch != plainBranch {
				t.Errorf("the branch is %s", result.Branch)
			}
		})
	}
}
