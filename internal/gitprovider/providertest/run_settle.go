package providertest

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func settleTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"lists our branches alone":                       settleBranches,
		"lists our open pull requests below a number":    settleOpen,
		"reads a commit with parents, message and files": settleCommit,
		"knows no commit that is not there":              settleNoCommit,
		"withdraws what was just opened":                 settleWithdraw,
		"withdraws nothing that has moved":               settleWithdrawMoved,
		"writes the body of one that is closed":          settleWithdrawClosed,
		"withdraws nothing that was merged":              settleWithdrawMerged,
	}
}

func settleBranches(t *testing.T, h Harness) {
	s := newScene(t, h)
	all := func() map[string]string {
		tips, err := s.p.OurBranches(s.ctx, s.Ref())
		s.Must(err)
		return tips
	}
	s.Same("without any", len(all()), 0)
	s.Push("feature/x", File{Path: "checks/x.md", Content: "x\n"})
	s.Push("claude-opsx", File{Path: "checks/x.md", Content: "x\n"})
	a := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	b := s.Commit("claude-ops/fix/disk", Update("checks/disk.md", "newer\n"))
	s.Same("tips", all(), map[string]string{a.Branch: a.ID, b.Branch: b.ID})
}

func settleOpen(t *testing.T, h Harness) {
	s := newScene(t, h)
	first := s.Propose("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.Push("feature/x", File{Path: "x.md", Content: "x\n"})
	s.OpenPR("feature/x", "Somebody else's")
	last := s.Propose("claude-ops/check/inodes", Create("checks/inodes.md", "i\n"))
	for below, want := range map[int][]int{first.Number: nil, last.Number: {first.Number},
		last.Number + 1: {first.Number, last.Number}} {
		prs, err := s.p.OpenOurs(s.ctx, s.Ref(), below)
		s.Must(err)
		var numbers []int
		for _, pr := range prs {
			numbers = append(numbers, pr.Number)
			if len(pr.Paths) != 1 {
				t.Errorf("#%d changes %v", pr.Number, pr.Paths)
			}
		}
		s.Same("numbers", numbers, want)
	}
}

func settleCommit(t *testing.T, h Harness) {
	s := newScene(t, h)
	base := s.Branches()[MainBranch]
	req := gitprovider.CommitRequest{
		Snapshot: s.Look("checks/disk.md", "checks/memory.md", "checks/inodes.md"), Branch: "claude-ops/check/disk",
		Time: when(),
		Changes: ChangeSet(t, Update("checks/disk.md", "new\n"), Delete("checks/memory.md"),
			Create("checks/inodes.md", "# Inodes\n")),
		Message: "Watch the disk\n\nA line.\n\nClaude-Ops-Change: v1 x\n",
	}
	made, err := s.p.Commit(s.ctx, req)
	s.Must(err)
	info, err := s.p.ReadCommit(s.ctx, s.Ref(), made.ID)
	s.Must(err)
	s.Same("id", info.ID, made.ID)
	s.Same("parents", info.Parents, []string{base})
	s.Same("message", strings.TrimSpace(info.Message), strings.TrimSpace(req.Message))
	s.Same("paths", info.Paths, []string{"checks/disk.md", "checks/inodes.md", "checks/memory.md"})
	if info.Time.IsZero() {
		t.Error("the commit has no time")
	}
	pushed := s.Push(made.Branch, File{Path: "checks/deep/more.md", Content: "m\n"}, File{Path: "top.txt", Content: "t\n"})
	info, err = s.p.ReadCommit(s.ctx, s.Ref(), pushed)
	s.Must(err)
	s.Same("parents of a push", info.Parents, []string{made.ID})
	s.Same("paths of a push", info.Paths, []string{"checks/deep/more.md", "top.txt"})
	turned := s.Push(made.Branch, File{Path: "top.txt", Kind: gitprovider.KindSymlink, Content: "checks/disk.md"})
	info, err = s.p.ReadCommit(s.ctx, s.Ref(), turned)
	s.Must(err)
	s.Same("paths of a file that turns into a link", info.Paths, []string{"top.txt"})
}

func settleNoCommit(t *testing.T, h Harness) {
	s := newScene(t, h)
	for _, id := range []string{strings.Repeat("1", len(s.Branches()[MainBranch])), "", "main"} {
		if _, err := s.p.ReadCommit(s.ctx, s.Ref(), id); err == nil {
			t.Errorf("%q was read", id)
		}
	}
	_, err := s.p.ReadCommit(s.ctx, s.Ref(), strings.Repeat("1", len(s.Branches()[MainBranch])))
	s.Code(err, fault.NotFound)
}

// just opens a pull request, and says how it is withdrawn.
func (s *Scene) just(branch string) (gitprovider.PullRequest, gitprovider.Withdrawal) {
	s.t.Helper()
	pr := s.Propose(branch, Update("checks/disk.md", "new\n"))
	return pr, gitprovider.Withdrawal{Number: pr.Number, Branch: pr.Branch, Head: pr.HeadCommit, Body: "It came second.\n"}
}

func settleWithdraw(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, w := s.just("claude-ops/check/disk")
	s.Must(s.p.Withdraw(s.ctx, s.Ref(), w))
	status, err := s.p.Status(s.ctx, s.Ref(), pr.Number)
	s.Must(err)
	s.Same("state", status.State, gitprovider.StateClosed)
	s.Same("body", strings.TrimSpace(status.Body), strings.TrimSpace(w.Body))
	s.Same("branch", s.Tip(pr.Branch), pr.HeadCommit)
	s.Must(s.p.Withdraw(s.ctx, s.Ref(), w)) // again
}

func settleWithdrawMoved(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, w := s.just("claude-ops/check/disk")
	other := w
	other.Head = s.Branches()[MainBranch]
	s.Code(s.p.Withdraw(s.ctx, s.Ref(), other), fault.Conflict)
	s.Push(pr.Branch, File{Path: "checks/more.md", Content: "a person's\n"})
	s.Code(s.p.Withdraw(s.ctx, s.Ref(), w), fault.Conflict)
	foreign := w
	foreign.Branch = "feature/x"
	s.Code(s.p.Withdraw(s.ctx, s.Ref(), foreign), fault.InvalidArgument)
	status, err := s.p.Status(s.ctx, s.Ref(), pr.Number)
	s.Must(err)
	s.Same("state", status.State, gitprovider.StateOpen)
	w.Number += 1000
	s.Code(s.p.Withdraw(s.ctx, s.Ref(), w), fault.NotFound)
}

func settleWithdrawClosed(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, w := s.just("claude-ops/check/disk")
	s.Close(pr.Number)
	s.Must(s.p.Withdraw(s.ctx, s.Ref(), w))
	status, err := s.p.Status(s.ctx, s.Ref(), pr.Number)
	s.Must(err)
	s.Same("state and body", []string{string(status.State), strings.TrimSpace(status.Body)},
		[]string{"closed", strings.TrimSpace(w.Body)})
}

func settleWithdrawMerged(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, w := s.just("claude-ops/check/disk")
	s.Merge(pr.Number)
	s.Code(s.p.Withdraw(s.ctx, s.Ref(), w), fault.Conflict)
}
