package providertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func branchTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"tip is its commit, or empty":            branchTip,
		"is deleted while its tip is the same":   branchDelete,
		"that moved is not deleted":              branchDeleteMoved,
		"that is gone already may be deleted":    branchDeleteGone,
		"outside our prefix is never deleted":    branchDeleteForeign,
		"can be made again after it was deleted": branchAgain,
		"may be as long as an object id":         branchAsLongAsAnID,
	}
}

// Tip returns the commit at the head of a branch; "" if there is none.
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

// branchAsLongAsAnID holds names that have, short or in full, the length of an object id of SHA-1 or SHA-256: some
// servers take them for one.
func branchAsLongAsAnID(t *testing.T, h Harness) {
	for _, length := range []int{29, 40, 53, 64} {
		s := newScene(t, h)
		base := "release/" + strings.Repeat("r", length-len("release/"))
		s.Push(base, File{Path: "checks/old.md", Content: "old\n"})
		q := gitprovider.SnapshotQuery{Repo: s.Ref(), Base: base, Contents: true,
			Paths: []gitprovider.Path{Path(t, "checks/old.md")}}
		for _, q.FilesOnly = range []bool{false, true} {
			snap, err := s.p.Snapshot(s.ctx, q)
			s.Must(err)
			s.Same("base", []string{snap.Base, snap.BaseCommit}, []string{base, s.Tip(base)})
			s.Same("content", string(snap.Contents[q.Paths[0]]), "old\n")
		}
		missing := q
		missing.Base = base[:length-1] + "x"
		_, err := s.p.Snapshot(s.ctx, missing)
		s.Code(err, fault.NotFound)

		ours := "claude-ops/check/" + strings.Repeat("c", length-len("claude-ops/check/"))
		pr := s.Propose(ours, Update("checks/disk.md", "new\n"))
		made, err := s.reviser().Append(s.ctx, s.more(ours, Update("checks/disk.md", "newer\n")))
		s.Must(err)
		status := s.Status(pr.Number)
		s.Same("head", []string{status.Branch, status.HeadCommit, s.Tip(ours)}, []string{ours, made.ID, made.ID})
		found, err := s.p.FindByHead(s.ctx, s.Ref(), ours)
		s.Must(err)
		if found == nil || found.Number != pr.Number {
			t.Errorf("of the branch %s %+v was found", ours, found)
		}
		s.Must(s.p.DeleteBranch(s.ctx, s.Ref(), ours, made.ID))
	}
}
