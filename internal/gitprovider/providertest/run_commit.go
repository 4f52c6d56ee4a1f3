package providertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func commitTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"makes a branch with one commit on the base":        commitOne,
		"creates, updates and deletes in one commit":        commitMixed,
		"removes a folder with its last file":               commitLastFile,
		"makes folders as needed":                           commitNewFolder,
		"keeps the executable bit of an updated file":       commitExecutable,
		"keeps links and submodules elsewhere as they are":  commitKeepsOthers,
		"on a moved base is a conflict and makes no branch": commitMovedBase,
		"on a branch that exists is a conflict":             commitBranchExists,
		"below or above an existing branch is a conflict":   commitBranchInTheWay,
		"refuses the zero change set":                       commitZero,
		"refuses a branch that is not ours":                 commitForeignBranch,
		"on another base than the default one":              commitOtherBase,
		"without a repository is not found":                 commitNoRepo,
	}
}

// checkTree demands that a commit's tree is the base's with the changes made, and nothing else.
func (s *Scene) checkTree(commit, base string, want func(files map[string]File)) {
	s.t.Helper()
	files := map[string]File{}
	for _, f := range s.Files(base) {
		files[f.Path] = f
	}
	want(files)
	got := map[string]File{}
	for _, f := range s.Files(commit) {
		got[f.Path] = f
	}
	s.Same("tree", got, files)
}

func file(path, content string) File {
	return File{Path: path, Kind: gitprovider.KindFile, Content: content}
}

func commitOne(t *testing.T, h Harness) {
	s := newScene(t, h)
	base := s.Branches()[MainBranch]
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.Same("branch", made.Branch, "claude-ops/check/disk")
	s.Same("branches", s.Branches(), map[string]string{MainBranch: base, "claude-ops/check/disk": made.ID})
	s.Same("parents", s.Parents(made.ID), []string{base})
	s.Same("message", strings.TrimSpace(s.Message(made.ID)), "Update the checks\n\nThe disk was full.")
	s.checkTree(made.ID, base, func(files map[string]File) { files["checks/disk.md"] = file("checks/disk.md", "new\n") })
}

func commitMixed(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/fix/mixed",
		Update("checks/disk.md", "new\n"), Delete("checks/memory.md"),
		Create("checks/a-new.md", "a\n"), Create("CLAUDE-OPS.md", "# Manifest\n"))
	s.checkTree(made.ID, s.Branches()[MainBranch], func(files map[string]File) {
		files["checks/disk.md"] = file("checks/disk.md", "new\n")
		files["checks/a-new.md"] = file("checks/a-new.md", "a\n")
		files["CLAUDE-OPS.md"] = file("CLAUDE-OPS.md", "# Manifest\n")
		delete(files, "checks/memory.md")
	})
}

func commitLastFile(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/fix/remove", Delete("playbooks/restart.md"))
	s.checkTree(made.ID, s.Branches()[MainBranch], func(files map[string]File) { delete(files, "playbooks/restart.md") })
	only := newScene(t, h, File{Path: "checks/only.md", Content: "only\n"})
	made = only.Commit("claude-ops/fix/remove", Delete("checks/only.md"))
	only.Same("files after the last was deleted", len(only.Files(made.ID)), 0)
}

func commitNewFolder(t *testing.T, h Harness) {
	s := newScene(t, h, File{Path: "README.md", Content: "# Empty\n"})
	var changes []gitprovider.FileChange
	paths := []string{".claude-ops/skills/first.md", ".claude/skills/first/SKILL.md",
		".agents/skills/first/references/more.md"}
	for _, path := range paths {
		changes = append(changes, Create(path, "first\n"))
	}
	made := s.Commit("claude-ops/skill/first", changes...)
	s.checkTree(made.ID, s.Branches()[MainBranch], func(files map[string]File) {
		for _, path := range paths {
			files[path] = file(path, "first\n")
		}
	})
}

func commitExecutable(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/playbook/restart", Update("playbooks/restart.md", "new\n"))
	s.checkTree(made.ID, s.Branches()[MainBranch], func(files map[string]File) {
		f := file("playbooks/restart.md", "new\n")
		f.Executable = true
		files["playbooks/restart.md"] = f
	})
}

func commitKeepsOthers(t *testing.T, h Harness) {
	s := newScene(t, h,
		File{Path: "checks/disk.md", Content: "disk\n"},
		File{Path: "checks/link.md", Kind: gitprovider.KindSymlink, Content: "disk.md"},
		File{Path: "vendor", Kind: gitprovider.KindSubmodule},
		File{Path: "run.sh", Content: "#!/bin/sh\n", Executable: true},
	)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.checkTree(made.ID, s.Branches()[MainBranch],
		func(files map[string]File) { files["checks/disk.md"] = file("checks/disk.md", "new\n") })
}

func commitMovedBase(t *testing.T, h Harness) {
	s := newScene(t, h)
	req := s.Request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.Push(MainBranch, File{Path: "README.md", Content: "moved\n"})
	before := s.Branches()
	_, err := s.p.Commit(s.ctx, req)
	s.Code(err, fault.Conflict)
	s.Same("branches", s.Branches(), before)
}

func commitBranchExists(t *testing.T, h Harness) {
	s := newScene(t, h)
	req := s.Request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	s.Push("claude-ops/check/disk", File{Path: "checks/x.md", Content: "x\n"})
	before := s.Branches()
	_, err := s.p.Commit(s.ctx, req)
	s.Code(err, fault.Conflict)
	s.Same("branches", s.Branches(), before)
}

func commitBranchInTheWay(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Push("claude-ops/fix", File{Path: "checks/x.md", Content: "x\n"})
	s.Push("claude-ops/check/disk/more", File{Path: "checks/x.md", Content: "x\n"})
	before := s.Branches()
	for _, branch := range []string{"claude-ops/fix/disk", "claude-ops/check/disk"} {
		_, err := s.p.Commit(s.ctx, s.Request(branch, Update("checks/disk.md", "new\n")))
		s.Code(err, fault.Conflict)
	}
	s.Same("branches", s.Branches(), before)
}

func commitZero(t *testing.T, h Harness) {
	s := newScene(t, h)
	before := s.Branches()
	_, err := s.p.Commit(s.ctx, gitprovider.CommitRequest{Snapshot: s.Look(), Branch: "claude-ops/fix/zero",
		Message: "zero", Time: when()})
	s.Code(err, fault.InvalidArgument)
	s.Same("branches", s.Branches(), before)
}

func commitForeignBranch(t *testing.T, h Harness) {
	s := newScene(t, h)
	before := s.Branches()
	for _, branch := range []string{"feature/x", "", "claude-opsx/fix/a", MainBranch} {
		_, err := s.p.Commit(s.ctx, s.Request(branch, Update("checks/disk.md", "new\n")))
		s.Code(err, fault.InvalidArgument)
	}
	s.Same("branches", s.Branches(), before)
}

func commitOtherBase(t *testing.T, h Harness) {
	s := newScene(t, h)
	tip := s.Push("stable", File{Path: "checks/old.md", Content: "old\n"})
	snap := s.snapshot(gitprovider.SnapshotQuery{Repo: s.Ref(), Base: "stable",
		Paths: []gitprovider.Path{Path(t, "checks/old.md")}})
	made, err := s.p.Commit(s.ctx, gitprovider.CommitRequest{
		Snapshot: snap, Branch: "claude-ops/check/old", Changes: ChangeSet(t,
			Update("checks/old.md", "new\n")), Message: "m", Time: when(),
	})
	s.Must(err)
	s.Same("parents", s.Parents(made.ID), []string{tip})
}

func commitNoRepo(t *testing.T, h Harness) {
	s := newScene(t, h)
	req := s.Request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	req.Snapshot.Repo.Name = "no-such-repository"
	_, err := s.p.Commit(s.ctx, req)
	s.Code(err, fault.NotFound)
}

func contentTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"of every kind arrive byte for byte": contentExact,
		"of many files arrive in one commit": contentMany,
	}
}

// unusualContents returns texts that break line-end conversions, quoting and framing.
func unusualContents() map[string]string {
	return map[string]string{
		"empty":      "",
		"no-newline": "no newline at the end",
		"crlf":       "one\r\ntwo\r\n",
		"mixed":      "one\r\ntwo\nthree\r",
		"newlines":   "\n\n\n",
		"utf8":       "Grüße, 世界 \U0001F680\n",
		"bom":        "\ufeffwith a byte order mark\n",
		"large":      strings.Repeat("0123456789abcdef", 16<<10),
		"keywords":   "$Id$ $Format:%H$\ndata 5\nD checks/disk.md\ndone\n",
		"control":    "tab\there \x1b[31m\x00nul\n",
	}
}

func contentExact(t *testing.T, h Harness) {
	s := newScene(t, h)
	var changes []gitprovider.FileChange
	for name, content := range unusualContents() {
		changes = append(changes, Create("checks/"+name+".md", content))
	}
	made := s.Commit("claude-ops/check/contents", changes...)
	s.checkTree(made.ID, s.Branches()[MainBranch], func(files map[string]File) {
		for _, c := range changes {
			files[c.Path] = file(c.Path, c.Content)
		}
	})
}

func contentMany(t *testing.T, h Harness) {
	s := newScene(t, h)
	var changes []gitprovider.FileChange
	for i := range gitprovider.MaxFilesPerPR {
		changes = append(changes, Create("checks/n"+strings.Repeat("0", i)+".md", strings.Repeat("x", i)))
	}
	made := s.Commit("claude-ops/check/many", changes...)
	s.Same("parents", s.Parents(made.ID), []string{s.Branches()[MainBranch]})
	s.checkTree(made.ID, s.Branches()[MainBranch], func(files map[string]File) {
		for _, c := range changes {
			files[c.Path] = file(c.Path, c.Content)
		}
	})
}

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
			snap := s.snapshot(q)
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
