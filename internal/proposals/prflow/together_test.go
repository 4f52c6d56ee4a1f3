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
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// This file tests where the parts of the pipeline meet.

// meetsARival lets a process with records of its own open a pull request on the same file just before ours.
func (b *bench) meetsARival(content string) {
	b.Helper()
	s := emptyRecords.Open(b, b.TempDir(), store.Options{Now: b.clock.Now})
	options := b.options
	options.Ledger, options.History = s.Ledger, s.History
	b.fake.Script.Before(forgetest.MethodOpenPullRequest, func() {
		_, err := prflow.New(options).Create(context.Background(), agent, request(func(r map[string]any) {
			r["title"], r["files"] = "Another title", []any{file("checks/inodes.md", "create", content)}
		}))
		if err != nil {
			b.Errorf("the rival: %v", err)
		}
	})
}

func TestAPullRequestThatCouldNotBeWithdrawnHoldsTheCooldownWhenSomebodyRejectsIt(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.meetsARival("# Otherwise\n")
	b.fake.Script.FailBefore(forgetest.MethodWithdraw, fault.New(fault.ProviderDisabled, "the token may not do that"))
	result := b.mustOpen(request(nil))
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
	again := request(files(file("checks/inodes.md", "update", "# Inodes\n")))
	b.mustRefuse(again, fault.CooldownActive)
}

func TestAWithdrawalWhoseAnswerWasLostIsLookedAt(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.meetsARival("# Otherwise\n")
	b.fake.Script.FailAfter(forgetest.MethodWithdraw)
	result, err := b.create(request(nil))
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
	if _, err := b.create(request(nil)); fault.CodeOf(err) != fault.Timeout {
		t.Fatal(err)
	}
	b.world().Push(plainBranch, providertest.File{Path: "checks/inodes.md", Content: "# Something else\n"})
	number := b.world().OpenPR(plainBranch, "Of another installation")
	e, _ := b.mustRefuse(request(nil), fault.DuplicatePR)
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
			result, err := b.create(request(nil))
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
	b.options.Registry = gitprovider.NewRegistry([]gitprovider.Registration{
		{Name: "fake", Provider: panicky{b.fake}, Hosts: []string{"git.example.org"}},
	}, nil, "", nil)
	b.fake.Script.Before(forgetest.MethodOpenPullRequest, func() { // a number between, so that rivals are looked for
		b.world().Push("feature/x", providertest.File{Path: "README.md", Content: "x"})
		b.world().OpenPR("feature/x", "A person's")
	})
	result := b.mustOpen(request(nil))
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
	if _, err := b.create(request(nil)); err == nil || len(b.open()) != 1 {
		t.Fatalf("%v, open %v", err, b.open())
	}
	b.options.Authority.DryRun = true
	result, err := b.create(request(nil))
	if err != nil || !result.Reused || !result.DryRun {
		t.Errorf("%+v, %v", result, err)
	}
	if left, err := b.store.History.Unfinished(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("left %+v, %v", left, err)
	}
}

func TestAPanicAfterTheRecordMakesNoSecondRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(request(nil))
	caller := agent
	caller.Progress = func(phase string) {
		if strings.HasPrefix(phase, "completing") {
			panic(phase)
		}
	}
	_, err := prflow.New(b.options).Create(t.Context(), caller, request(nil))
	if rows := b.attempts(); fault.CodeOf(err) != fault.Internal || len(rows) != 2 ||
		rows[0].Outcome != record.OutcomeReused {
		t.Errorf("%v; recorded %+v", err, rows)
	}
}
