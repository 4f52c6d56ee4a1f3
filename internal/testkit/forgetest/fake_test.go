package forgetest

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

func TestFakeFulfilsTheContract(t *testing.T) { providertest.Run(t, FakeHarness{}) }

func newFakeScene(t *testing.T) (*Fake, *providertest.Scene) {
	t.Helper()
	f := NewFake()
	ref := f.AddRepo("demo", "home-cluster", map[string]string{"checks/disk.md": "disk\n"})
	return f, providertest.NewScene(t, f.World(t, ref))
}

func TestFakeCountsReadsAndWrites(t *testing.T) {
	f, s := newFakeScene(t)
	pr := s.Propose("claude-ops/check/disk")
	s.Status(pr.Number)
	s.Same("calls", f.Script.Calls(), []string{MethodSnapshot, MethodCommit, MethodOpenPullRequest, MethodLabel,
		MethodStatus})
	s.Same("writes and reads", []int{f.Script.Writes(), f.Script.Reads(), f.Script.Count(MethodLabel)}, []int{3, 2, 1})
	f.Script.ForgetCalls()
	s.Same("calls after forgetting", len(f.Script.Calls()), 0)
}

func TestFakeFailsBeforeItActs(t *testing.T) {
	f, s := newFakeScene(t)
	req := s.Request("claude-ops/check/disk", providertest.Update("checks/disk.md", "new\n"))
	f.Script.FailBefore(MethodCommit, fault.New(fault.RateLimited, "slow down"))
	_, err := s.Provider().Commit(t.Context(), req)
	s.Code(err, fault.RateLimited)
	s.Same("tip", s.Tip(req.Branch), "")
	_, err = s.Provider().Commit(t.Context(), req)
	s.Must(err)
}

func TestFakeFailsAfterItActed(t *testing.T) {
	f, s := newFakeScene(t)
	made := s.Commit("claude-ops/check/disk", providertest.Update("checks/disk.md", "new\n"))
	f.Script.FailAfter(MethodOpenPullRequest)
	_, err := s.Provider().OpenPullRequest(t.Context(), s.Spec(made.Branch, "Ambiguous"))
	s.Code(err, fault.UpstreamError)
	if s.Find(made.Branch) == nil {
		t.Fatal("the pull request was not opened")
	}
}

func TestFakeLetsOthersActInBetween(t *testing.T) {
	f, s := newFakeScene(t)
	req := s.Request("claude-ops/check/disk", providertest.Update("checks/disk.md", "new\n"))
	f.Script.Before(MethodCommit,
		func() { s.Push(providertest.MainBranch, providertest.File{Path: "README.md", Content: "moved\n"}) })
	_, err := s.Provider().Commit(t.Context(), req)
	s.Code(err, fault.Conflict)

	made := false
	f.Script.After(MethodCommit, func() { made = s.Branches()["claude-ops/check/after"] != "" })
	s.Commit("claude-ops/check/after", providertest.Update("checks/disk.md", "new\n"))
	s.Same("the hook saw the branch", made, true)
}

func TestFakeBlocksUntilReleased(t *testing.T) {
	f, s := newFakeScene(t)
	entered, release := f.Script.Block(MethodStatus)
	done := make(chan error)
	go func() {
		_, err := s.Provider().Status(t.Context(), s.Ref(), 1)
		done <- err
	}()
	<-entered
	s.Same("another method meanwhile", s.Tip("none"), "")
	release()
	s.Code(<-done, fault.NotFound)
}

func TestFakeBlocksUntilTheContextEnds(t *testing.T) {
	f, s := newFakeScene(t)
	entered, release := f.Script.Block(MethodBranchTip)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := s.Provider().BranchTip(ctx, s.Ref(), providertest.MainBranch)
	s.Code(err, fault.Timeout)
}

func TestFakeShowsFlagsAndChecks(t *testing.T) {
	f, s := newFakeScene(t)
	pr := s.Propose("claude-ops/check/disk")
	f.People.Alter(s.Ref(), true, true, pr.Branch)
	f.SetName("gitea")
	checks := gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"lint"}}
	f.People.SetChecks(s.Ref(), pr.Number, checks)
	snap := s.Look()
	s.Same("flags", []any{snap.Archived, snap.Fork, snap.DefaultBranch, f.Name()}, []any{true, true, pr.Branch, "gitea"})
	s.Same("checks", s.Status(pr.Number).Checks, checks)
}

func TestFakeTreatsArchivedRepositoriesAsReadOnly(t *testing.T) {
	f, s := newFakeScene(t)
	req := s.Request("claude-ops/check/disk", providertest.Update("checks/disk.md", "new\n"))
	f.People.Alter(s.Ref(), true, false, providertest.MainBranch)
	_, err := s.Provider().Commit(t.Context(), req)
	s.Code(err, fault.UpstreamError)
}
