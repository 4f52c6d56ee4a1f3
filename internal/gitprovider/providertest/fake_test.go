package providertest

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestFakeFulfilsTheContract(t *testing.T) { Run(t, FakeHarness{}) }

func newFakeScene(t *testing.T) (*Fake, *scene) {
	t.Helper()
	f := NewFake()
	ref := f.AddRepo("demo", "home-cluster", map[string]string{"checks/disk.md": "disk\n"})
	return f, sceneOf(t, f.World(t, ref))
}

func TestFakeCountsReadsAndWrites(t *testing.T) {
	f, s := newFakeScene(t)
	pr := s.propose("claude-ops/check/disk")
	s.status(pr.Number)
	s.same("calls", f.Calls(), []string{MethodSnapshot, MethodCommit, MethodOpenPullRequest, MethodLabel, MethodStatus})
	s.same("writes and reads", []int{f.Writes(), f.Reads(), f.Count(MethodLabel)}, []int{3, 2, 1})
	f.ForgetCalls()
	s.same("calls after forgetting", len(f.Calls()), 0)
}

func TestFakeFailsBeforeItActs(t *testing.T) {
	f, s := newFakeScene(t)
	req := s.request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	f.FailBefore(MethodCommit, fault.New(fault.RateLimited, "slow down"))
	_, err := s.p.Commit(s.ctx, req)
	s.code(err, fault.RateLimited)
	s.same("tip", s.tip(req.Branch), "")
	_, err = s.p.Commit(s.ctx, req)
	s.must(err)
}

func TestFakeFailsAfterItActed(t *testing.T) {
	f, s := newFakeScene(t)
	made := s.commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	f.FailAfter(MethodOpenPullRequest)
	_, err := s.p.OpenPullRequest(s.ctx, s.spec(made.Branch, "Ambiguous"))
	s.code(err, fault.UpstreamError)
	if s.find(made.Branch) == nil {
		t.Fatal("the pull request was not opened")
	}
}

func TestFakeLetsOthersActInBetween(t *testing.T) {
	f, s := newFakeScene(t)
	req := s.request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	f.Before(MethodCommit, func() { s.Push(MainBranch, File{Path: "README.md", Content: "moved\n"}) })
	_, err := s.p.Commit(s.ctx, req)
	s.code(err, fault.Conflict)

	made := false
	f.After(MethodCommit, func() { made = s.Branches()["claude-ops/check/after"] != "" })
	s.commit("claude-ops/check/after", Update("checks/disk.md", "new\n"))
	s.same("the hook saw the branch", made, true)
}

func TestFakeBlocksUntilReleased(t *testing.T) {
	f, s := newFakeScene(t)
	entered, release := f.Block(MethodStatus)
	done := make(chan error)
	go func() {
		_, err := s.p.Status(s.ctx, s.Ref(), 1)
		done <- err
	}()
	<-entered
	s.same("another method meanwhile", s.tip("none"), "")
	release()
	s.code(<-done, fault.NotFound)
}

func TestFakeBlocksUntilTheContextEnds(t *testing.T) {
	f, s := newFakeScene(t)
	entered, release := f.Block(MethodBranchTip)
	defer release()
	ctx, cancel := context.WithCancel(s.ctx)
	go func() {
		<-entered
		cancel()
	}()
	_, err := s.p.BranchTip(ctx, s.Ref(), MainBranch)
	s.code(err, fault.Timeout)
}

func TestFakeShowsFlagsAndChecks(t *testing.T) {
	f, s := newFakeScene(t)
	pr := s.propose("claude-ops/check/disk")
	f.Alter(s.Ref(), true, true, pr.Branch)
	f.SetName("gitea")
	checks := gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"lint"}}
	f.SetChecks(s.Ref(), pr.Number, checks)
	snap := s.look()
	s.same("flags", []any{snap.Archived, snap.Fork, snap.DefaultBranch, f.Name()}, []any{true, true, pr.Branch, "gitea"})
	s.same("checks", s.status(pr.Number).Checks, checks)
}

func TestFakeTreatsArchivedRepositoriesAsReadOnly(t *testing.T) {
	f, s := newFakeScene(t)
	req := s.request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	f.Alter(s.Ref(), true, false, MainBranch)
	_, err := s.p.Commit(s.ctx, req)
	s.code(err, fault.UpstreamError)
}
