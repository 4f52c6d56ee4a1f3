package providertest

import (
	"slices"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
)

func branchTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"tip is its commit, or empty":            branchTip,
		"is deleted while its tip is the same":   branchDelete,
		"that moved is not deleted":              branchDeleteMoved,
		"that is gone already may be deleted":    branchDeleteGone,
		"outside our prefix is never deleted":    branchDeleteForeign,
		"can be made again after it was deleted": branchAgain,
	}
}

// Tip is the commit at the head of a branch; "" if there is none.
func (s *Scene) Tip(branch string) string {
	s.t.Helper()
	tip, err := s.p.BranchTip(s.ctx, s.Ref(), branch)
	s.Must(err)
	return tip
}

func branchTip(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.Same("tip", s.Tip("claude-ops/check/disk"), made.ID)
	s.Same("tip of main", s.Tip(MainBranch), s.Branches()[MainBranch])
	for _, none := range []string{"claude-ops/check", "claude-ops/check/dis", "disk", "claude-ops/check/*"} {
		s.Same("tip of "+none, s.Tip(none), "")
	}
}

func branchDelete(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.Must(s.p.DeleteBranch(s.ctx, s.Ref(), made.Branch, made.ID))
	s.Same("tip", s.Tip(made.Branch), "")
}

func branchDeleteMoved(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	moved := s.Push(made.Branch, File{Path: "checks/by-a-person.md", Content: "p\n"})
	s.Code(s.p.DeleteBranch(s.ctx, s.Ref(), made.Branch, made.ID), fault.Conflict)
	s.Same("tip", s.Tip(made.Branch), moved)
}

func branchDeleteGone(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.DeleteBranch(made.Branch)
	s.Must(s.p.DeleteBranch(s.ctx, s.Ref(), made.Branch, made.ID))
}

func branchDeleteForeign(t *testing.T, h Harness) {
	s := newScene(t, h)
	tip := s.Push("feature/x", File{Path: "checks/x.md", Content: "x\n"})
	s.Push("claude-opsx", File{Path: "checks/x.md", Content: "x\n"})
	before := s.Branches()
	for _, branch := range []string{"feature/x", "claude-opsx", MainBranch, "", "claude-ops"} {
		s.Code(s.p.DeleteBranch(s.ctx, s.Ref(), branch, tip), fault.InvalidArgument)
	}
	s.Same("branches", s.Branches(), before)
}

func branchAgain(t *testing.T, h Harness) {
	s := newScene(t, h)
	first := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.Must(s.p.DeleteBranch(s.ctx, s.Ref(), first.Branch, first.ID))
	again := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "newer\n"))
	if slices.Contains([]string{"", first.ID}, s.Tip(again.Branch)) {
		t.Fatalf("the branch is at %q, want the second commit", s.Tip(again.Branch))
	}
}
