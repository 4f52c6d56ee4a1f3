package prflow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

func TestReviewersAndAssigneesOfThePolicyAreAskedWhereTheProviderKnowsSuchThings(t *testing.T) {
	t.Parallel()
	t.Run("they are asked once", func(t *testing.T) {
		b, people := newCrowd(t)
		result := b.mustOpen(createRequest(nil))
		if !slices.Equal(*people.asked, []string{"1 [Ann bob acme/ops] [joe]"}) || len(result.Warnings) > 0 {
			t.Errorf("asked %q, warnings %q", *people.asked, result.Warnings)
		}
	})
	t.Run("that somebody cannot be asked is a warning", func(t *testing.T) {
		b, people := newCrowd(t)
		*people.fails = fault.New(fault.NotFound, "there is no user ann")
		if result := b.mustOpen(createRequest(nil)); len(result.Warnings) != 1 ||
			!strings.Contains(result.Warnings[0], "no user ann") {
			t.Errorf("warnings %q", result.Warnings)
		}
	})
	t.Run("a dry run asks nobody and says who would be", func(t *testing.T) {
		b, people := newCrowd(t)
		result := b.shown(createRequest(nil))
		if len(*people.asked) > 0 || !slices.Contains(result.Preview.Calls, "ask Ann, bob, acme/ops for a review") {
			t.Errorf("%+v, asked %q", result.Preview, *people.asked)
		}
	})
	t.Run("a provider that knows no such things is not asked", func(t *testing.T) {
		b, people := newCrowd(t)
		b.through(people.Fake)
		if result := b.mustOpen(createRequest(nil)); len(result.Warnings) > 0 {
			t.Errorf("warnings %q", result.Warnings)
		}
	})
}

func noAnswer() *fault.Error { return fault.New(fault.Timeout, "the host did not answer in time") }

// unclear are the failures after which it is not known whether our pull request is a second one, or whether it was
// withdrawn.
func unclear() map[string]func(*forgetest.Script) {
	return map[string]func(*forgetest.Script){
		"nobody answers the look": func(s *forgetest.Script) { s.FailBefore(forgetest.MethodOpenOurs, noAnswer()) },
		"the look meets a limit": func(s *forgetest.Script) {
			s.FailBefore(forgetest.MethodOpenOurs, fault.New(fault.RateLimited, "too many requests"))
		},
		"nobody answers the withdrawal": func(s *forgetest.Script) { s.FailBefore(forgetest.MethodWithdraw, noAnswer()) },
		"the withdrawal's answer is lost, and nobody answers the look": func(s *forgetest.Script) {
			s.FailAfter(forgetest.MethodWithdraw)
			s.FailBefore(forgetest.MethodFindByHead, noAnswer())
		},
		"the answer to the opening is lost, and nobody answers the look": func(s *forgetest.Script) {
			s.FailAfter(forgetest.MethodOpenPullRequest)
			s.FailBefore(forgetest.MethodFindByHead, noAnswer())
		},
	}
}

// wantOne demands that the rival's pull request alone is open, and nothing is left to settle.
func (b *bench) wantOne() {
	b.Helper()
	if open := b.open(); !slices.Equal(open, []int{1}) {
		b.Errorf("open %v", open)
	}
	b.mustHoldNothing()
}

func TestASecondPullRequestThatMayBeOpenIsSettledByARound(t *testing.T) {
	t.Parallel()
	for name, fail := range unclear() {
		t.Run(name, func(t *testing.T) {
			b := newLateBench(t)
			b.meetsARival("# Otherwise\n")
			fail(b.fake.Script)
			result, err := b.create(createRequest(nil))
			if err != nil && !fault.From(err).Retryable() || err == nil && len(result.Warnings) != 1 {
				t.Fatalf("%+v, %v", result, err)
			}
			if settled, err := prflow.New(b.options).Resume(t.Context()); err != nil || len(settled) != 1 ||
				settled[0].Error != "" {
				t.Fatalf("settled %+v, %v", settled, err)
			}
			b.wantOne()
			b.world().Merge(1)
			b.clock.advance(time.Minute)
			b.mustOpen(createRequest(files(file("checks/inodes.md", "update", "# Inodes\n")))) // it was not rejected
		})
	}
}

func TestASecondPullRequestThatMayBeOpenIsSettledByTheIdenticalCall(t *testing.T) {
	t.Parallel()
	for name, fail := range unclear() {
		for content, code := range map[string]fault.Code{"# Inodes\n": "", "# Otherwise\n": fault.DuplicatePR} {
			t.Run(name+", "+content, func(t *testing.T) {
				b := newLateBench(t)
				b.meetsARival(content)
				fail(b.fake.Script)
				_, _ = b.create(createRequest(nil))
				result, err := b.create(createRequest(nil))
				if fault.CodeOf(err) != code || code == "" && (result.Number != 1 || !result.Reused) ||
					code != "" && fault.From(err).Existing.Number != 1 {
					t.Errorf("%+v, %v", result, err)
				}
				b.resume()
				b.wantOne()
			})
		}
	}
}

func TestAPullRequestThatWasNoSecondOneStaysOpenWhenThatIsSettled(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		meet func(b *bench)
	}{
		{"nobody else's changes the file", func(b *bench) { b.world().Close(1) }},
		{"a person has changed its branch", func(b *bench) {
			b.world().Push(plainBranch, providertest.File{Path: "checks/disk.md", Content: "# Disk, by a person\n"})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newLateBench(t)
			b.meetsARival("# Otherwise\n")
			b.fake.Script.FailBefore(forgetest.MethodOpenOurs, noAnswer())
			result := b.mustOpen(createRequest(nil))
			row.meet(b)
			b.resume()
			p, err := b.store.History.Proposal(t.Context(), result.RequestID)
			if err != nil || p.State != record.StateOpened || p.PRNumber != result.Number ||
				!slices.Contains(b.open(), result.Number) {
				t.Errorf("%+v, %v; open %v", p, err, b.open())
			}
		})
	}
}

func TestAPullRequestThatWasJudgedIsNoRivalWhateverIsPushedToItLater(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	older := b.mustOpen(createRequest(titled("Another title", file("checks/swap.md", "create", "# Swap\n"))))
	b.clock.advance(time.Hour)
	b.fake.Script.FailAfter(forgetest.MethodOpenPullRequest)
	b.fake.Script.FailBefore(forgetest.MethodFindByHead, noAnswer())
	if _, err := b.create(createRequest(nil)); err == nil {
		t.Fatal("no error")
	}
	b.world().Push(older.Branch, providertest.File{Path: "checks/inodes.md", Content: "# Inodes, by a person\n"})
	if _, err := prflow.New(b.options).Resume(t.Context()); err != nil || len(b.open()) != 2 {
		t.Errorf("open %v, %v", b.open(), err)
	}
}

func TestALookForOthersThatIsRefusedIsAWarning(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.meetsARival("# Otherwise\n")
	b.fake.Script.FailBefore(forgetest.MethodOpenOurs, fault.New(fault.ProviderDisabled, "the token may not do that"))
	if result := b.mustOpen(createRequest(nil)); len(result.Warnings) != 1 {
		t.Errorf("%+v", result)
	}
	b.mustHoldNothing()
}

// What follows tests where the parts of the pipeline meet.

// meetsARival lets a process with records of its own open a pull request on the same file just before ours.
func (b *bench) meetsARival(content string) {
	b.Helper()
	s := records.Open(b, nil, b.clock.Now)
	options := b.options
	options.Ledger, options.History = s.Ledger, s.History
	b.fake.Script.Before(forgetest.MethodOpenPullRequest, func() {
		rival := titled("Another title", file("checks/inodes.md", "create", content))
		if _, err := prflow.New(options).Create(context.Background(), agent, createRequest(rival)); err != nil {
			b.Errorf("the rival: %v", err)
		}
	})
}

func TestAPullRequestThatCouldNotBeWithdrawnHoldsTheCooldownWhenSomebodyRejectsIt(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.meetsARival("# Otherwise\n")
	b.fake.Script.FailBefore(forgetest.MethodWithdraw, fault.New(fault.ProviderDisabled, "the token may not do that"))
	result := b.mustOpen(createRequest(nil))
	if len(b.open()) != 2 || len(result.Warnings) == 0 {
		t.Fatalf("open %v, %+v", b.open(), result)
	}
	for _, number := range b.open() {
		if number == result.Number {
			b.world().Close(number)
		} else {
			b.world().Merge(number)
		}
	}
	b.clock.advance(time.Minute)
	again := createRequest(files(file("checks/inodes.md", "update", "# Inodes\n")))
	b.mustRefuse(again, fault.CooldownActive)
}

func TestAWithdrawalWhoseAnswerWasLostIsLookedAt(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.meetsARival("# Otherwise\n")
	b.fake.Script.FailAfter(forgetest.MethodWithdraw)
	result, err := b.create(createRequest(nil))
	if fault.CodeOf(err) != fault.DuplicatePR || len(b.open()) != 1 {
		t.Fatalf("%+v, %v, open %v", result, err, b.open())
	}
	usage, err := b.store.History.Usage(t.Context(), "fake", "joe", "infra", record.Claim{Seen: 99})
	if err != nil || usage.Open+usage.Pending+len(usage.Made) != 0 {
		t.Errorf("the withdrawn one still counts: %+v, %v", usage, err)
	}
}

func TestABranchOfTheSameNameDoesNotMakeAnotherChangeTheSame(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.fake.Script.FailBefore(forgetest.MethodCommit, fault.New(fault.Timeout, "the host did not answer in time"))
	b.mustFail(createRequest(nil), fault.Timeout)
	b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "# Something else\n"})
	number := b.world().OpenPR(plainBranch, "Of another installation")
	e, _ := b.mustRefuse(createRequest(nil), fault.DuplicatePR)
	if e.Existing == nil || e.Existing.Number != number {
		t.Errorf("%+v", e)
	}
}

func TestALookAgainSaysEachWarningOnceAndSeesOthersAnew(t *testing.T) {
	t.Parallel()
	for _, rule := range []policy.Duplicates{"", policy.DuplicatesAny} {
		t.Run(string(rule), func(t *testing.T) {
			b := newBench(t)
			if rule != "" {
				b.options.Authority.Policy = mustPolicy(t, "duplicates: any")
			}
			people := func(branch string) {
				b.world().Push(branch, providertest.File{Path: "checks/inodes.md", Content: "a person's " + branch})
				b.world().OpenPR(branch, "A person's")
			}
			if rule == "" {
				people("feature/x")
			}
			// the name is taken meanwhile, so that the gates are asked again
			b.fake.Script.Before(forgetest.MethodCommit, func() {
				b.world().Push(plainBranch, providertest.File{Path: "checks/z.md", Content: "z"})
				people("feature/y")
			})
			result, err := b.create(createRequest(nil))
			if rule == policy.DuplicatesAny {
				if fault.CodeOf(err) != fault.DuplicatePR || len(b.open()) != 0 {
					t.Errorf("%+v, %v", result, err)
				}
				return
			}
			if err != nil || len(result.Warnings) != 2 ||
				len(slices.Compact(slices.Sorted(slices.Values(result.Warnings)))) != 2 {
				t.Errorf("warnings %q, %v", result.Warnings, err)
			}
		})
	}
}

// panicky is a host whose adapter panics where it shall label.
type panicky struct{ *forgetest.Fake }

func (panicky) Label(context.Context, gitprovider.RepoRef, int, []string) error { panic("label") }

// OpenPullRequest implements gitprovider.Provider; the labels are to be set afterwards.
func (p panicky) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest,
	error) {
	pr, err := p.Fake.OpenPullRequest(ctx, spec)
	pr.Labels = nil
	return pr, err
}

// OpenOurs implements gitprovider.Settler.
func (panicky) OpenOurs(context.Context, gitprovider.RepoRef, int) ([]gitprovider.PullRequest, error) {
	panic("open ours")
}

func TestAPanicBesideThePipelineIsAWarningAndThePullRequestIsRecorded(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.through(panicky{b.fake})
	b.fake.Script.Before(forgetest.MethodOpenPullRequest, func() { // a number between, so that rivals are looked for
		b.personOpens(providertest.File{Path: "README.md", Content: "x"})
	})
	result := b.mustOpen(createRequest(nil))
	if !strings.Contains(fmt.Sprint(result.Warnings), "internal error") ||
		strings.Contains(fmt.Sprint(result.Warnings), "label") {
		t.Errorf("warnings %q", result.Warnings)
	}
	if rows := b.attempts(); rows[0].Outcome != record.OutcomeOpened || rows[0].PRNumber != result.Number {
		t.Errorf("recorded %+v", rows[0])
	}
}

func TestADryRunSettlesNothing(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.fake.Script.FailAfter(forgetest.MethodOpenPullRequest)
	b.fake.Script.FailBefore(forgetest.MethodFindByHead, down())
	if _, err := b.create(createRequest(nil)); err == nil || len(b.open()) != 1 {
		t.Fatalf("%v, open %v", err, b.open())
	}
	b.options.Authority.DryRun = true
	result, err := b.create(createRequest(nil))
	if err != nil || !result.Reused || !result.DryRun {
		t.Errorf("%+v, %v", result, err)
	}
	b.mustHold(1)
}

func TestAPanicAfterTheRecordMakesNoSecondRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(nil))
	caller := agent
	caller.Progress = func(phase string) {
		if strings.HasPrefix(phase, "completing") {
			panic(phase)
		}
	}
	_, err := prflow.New(b.options).Create(t.Context(), caller, createRequest(nil))
	if rows := b.attempts(); fault.CodeOf(err) != fault.Internal || len(rows) != 2 ||
		rows[0].Outcome != record.OutcomeReused {
		t.Errorf("%v; recorded %+v", err, rows)
	}
}
