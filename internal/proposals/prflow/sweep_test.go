package prflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

func repositories() []record.RepoName {
	return []record.RepoName{
		{Provider: "fake", Owner: "joe", Name: "infra"}, {Provider: "fake", Owner: "joe", Name: "gone"},
		{Provider: "gitea", Owner: "joe", Name: "infra"},
	}
}

func (b *bench) sweep(w *prflow.Sweeper) []prflow.Swept {
	b.Helper()
	swept, err := w.Sweep(b.Context(), repositories())
	if err != nil {
		b.Fatal(err)
	}
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
	t.Run("somebody pushes at the last moment", func(t *testing.T) {
		b := newLateBench(t)
		b.leaveABranch()
		b.loseState()
		b.clock.advance(2 * time.Hour)
		b.fake.Script.Before(forgetest.MethodDeleteBranch, func() {
			b.world().Push(plainBranch, providertest.File{Path: "notes.md", Content: "n\n"})
		})
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
