package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

func TestCommitsNameAuthorAndTime(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	p := w.provider(local.Options{AuthorName: "Ops <Bot>\n", AuthorEmail: "ops@example.org"})
	req := w.request("claude-ops/check/disk", disk("new\n"))
	req.Time = time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600))
	made, err := p.Commit(t.Context(), req)
	w.must(err)
	got := strings.TrimSpace(w.git("log", "-1", "--format=%an|%ae|%cn|%ce|%aI|%ct", made.ID))
	if want := "Ops Bot|ops@example.org|Ops Bot|ops@example.org|2026-03-04T04:06:07Z|1772597167"; strings.ReplaceAll(got,
		"+00:00", "Z") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestChangesThatDoNotFitTheBaseAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bare(),
		providertest.File{Path: "checks/disk.md", Content: "disk\n"},
		providertest.File{Path: "checks/link.md", Kind: gitprovider.KindSymlink, Content: "disk.md"},
		providertest.File{Path: "checks/module.md", Kind: gitprovider.KindSubmodule},
		providertest.File{Path: "checks/folder.md/file.md", Content: "in a folder\n"},
		providertest.File{Path: "playbooks", Kind: gitprovider.KindSymlink, Content: "checks"},
		providertest.File{Path: ".claude-ops", Content: "a file\n"})
	before := w.git("for-each-ref")
	for name, test := range map[string]struct {
		change gitprovider.FileChange
		want   fault.Code
	}{
		"create of an existing file":  {providertest.Create("checks/disk.md", "new\n"), fault.Conflict},
		"create of an identical file": {providertest.Create("checks/disk.md", "disk\n"), fault.Conflict},
		"update of a missing file":    {providertest.Update("checks/none.md", "new\n"), fault.Conflict},
		"delete of a missing file":    {providertest.Delete("checks/none.md"), fault.Conflict},
		"update that changes nothing": {disk("disk\n"), fault.NoChange},
		"update of a link":            {providertest.Update("checks/link.md", "new\n"), fault.Conflict},
		"delete of a link":            {providertest.Delete("checks/link.md"), fault.Conflict},
		"update of a submodule":       {providertest.Update("checks/module.md", "new\n"), fault.Conflict},
		"delete of a submodule":       {providertest.Delete("checks/module.md"), fault.Conflict},
		"delete of a folder":          {providertest.Delete("checks/folder.md"), fault.Conflict},
		"create in place of a folder": {providertest.Create("checks/folder.md", "new\n"), fault.Conflict},
		"create below a link":         {providertest.Create("playbooks/new.md", "new\n"), fault.Conflict},
		"create below a file":         {providertest.Create(".claude-ops/checks/new.md", "new\n"), fault.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := *w
			w.t = t
			req := w.request("claude-ops/fix/refused", test.change)
			_, err := w.p.Commit(t.Context(), req)
			w.refused(err, test.want)
			req.Snapshot.Tree = gitprovider.Tree{} // a caller's mistake: git's own answer is looked at, too
			if _, err := w.p.Commit(t.Context(), req); err == nil {
				t.Error("without the snapshot's tree it was not refused")
			}
			if after := w.git("for-each-ref"); after != before {
				t.Errorf("references before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

func TestASnapshotThatLiesAboutTheExecutableBitIsFound(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	req := w.request("claude-ops/check/disk", disk("new\n"))
	req.Snapshot.Tree["checks/disk.md"] = gitprovider.Entry{Kind: gitprovider.KindFile, Executable: true}
	_, err := w.p.Commit(t.Context(), req)
	w.refused(err, fault.Internal)
}

func TestBranchNamesThatGitDoesNotTake(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	req := w.request("", disk("new\n"))
	for _, name := range []string{
		"", "/", "fix/", "fix//x", "../main", "fix/..", "fix/.x", "fix/x.lock", "fix/x.", "fix/a b", "fix/a\x00b", "fix/a\nb",
		"fix/a~1",
		"fix/a^", "fix/a:b", "fix/a?", "fix/a*", "fix/a[b", "fix/a\\b", "fix/@{x", "fix/a\x7f", strings.Repeat("x", 255),
	} {
		req.Branch = gitprovider.BranchPrefix + name
		_, err := w.p.Commit(t.Context(), req)
		w.refused(err, fault.InvalidArgument)
	}
}

func TestASymbolicReferenceIsNeverWrittenThrough(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	main := w.Branches()["main"]
	w.git("symbolic-ref", "refs/heads/claude-ops/fix/to-main", "refs/heads/main")
	w.git("symbolic-ref", "refs/heads/claude-ops/fix/dangling", "refs/heads/made-by-us")
	w.must(w.p.DeleteBranch(t.Context(), w.Ref(), "claude-ops/fix/to-main", main))
	req := w.request("claude-ops/fix/dangling", disk("new\n"))
	_, _ = w.p.Commit(t.Context(), req)
	branches := w.Branches()
	if branches["main"] != main || branches["made-by-us"] != "" {
		t.Errorf("branches %v", branches)
	}
}

func TestALockThatSomebodyLeftIsAnError(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	w.must(os.WriteFile(filepath.Join(w.dir, "refs", "heads", "main.lock"), nil, 0o600))
	_, err := w.p.Commit(t.Context(), w.request("claude-ops/check/disk", disk("new\n")))
	w.refused(err, fault.UpstreamError, "main.lock")
	w.must(os.Remove(filepath.Join(w.dir, "refs", "heads", "main.lock")))
	_, err = w.p.Commit(t.Context(), w.request("claude-ops/check/disk", disk("new\n")))
	w.must(err)
}

func TestABranchThatIsCheckedOutIsNotDeleted(t *testing.T) {
	t.Parallel()
	w := home(t, ordinary())
	made, err := w.p.Commit(t.Context(), w.request("claude-ops/check/disk", disk("new\n")))
	w.must(err)
	w.git("symbolic-ref", "HEAD", "refs/heads/"+made.Branch)
	w.refused(w.p.DeleteBranch(t.Context(), w.Ref(), made.Branch, made.ID), fault.Conflict, "checked out")
}

func TestBaseBranchesMayHaveUnusualNames(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	for _, base := range []string{"büro/größe", "-x", "a'b\"c$d;e", "refs/heads/main", "x" + strings.Repeat("y", 100)} {
		w.git("update-ref", "refs/heads/"+base, "main")
		snap, err := w.p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: w.Ref(), Base: base})
		w.must(err)
		if snap.BaseCommit != w.Branches()["main"] {
			t.Errorf("%q is at %s", base, snap.BaseCommit)
		}
	}
}

// anyPath lets every canonical path pass, so that only the path type stands between a request and git.
func anyPath(t testing.TB) gitprovider.Rules {
	t.Helper()
	scope, err := gitprovider.NewScope([]string{"**"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	rules := providertest.Rules()
	rules.Scope = scope
	return rules
}

func FuzzTheFileNamedByGitIsTheApprovedOne(f *testing.F) {
	for _, seed := range []string{
		"checks/disk.md", "CLAUDE-OPS.md", ".claude-ops/skills/a.md", "a", "a/b/c/d/e/f", "v1..v2.md", "x/HEAD",
		"refs/heads/main",
		"checks/./a.md", "checks//a.md", "../a.md", "/a.md", ".git/config", ".GIT/config", "git~1/config", "checks/a b.md",
		"checks/ä.md",
		"\"quoted\".md", "checks/a\x00.md", "checks/a\n.md", "checks/%2e%2e/a.md", "checks/a.md/", "checks\\a.md", "-a",
		"a-/-b", "objects/info",
	} {
		f.Add(seed)
	}
	w := newWorld(f, bare(), providertest.File{Path: "zz-base.md", Content: "base\n"})
	rules := anyPath(f)
	f.Fuzz(func(t *testing.T, path string) {
		if _, err := gitprovider.ParsePath(path); err != nil || strings.HasPrefix(path, "zz-base.md") {
			return // not a path that can be approved, or the file that is there
		}
		set, violations := gitprovider.NewChangeSet(rules,
			[]gitprovider.FileChange{providertest.Create(path, "content of "+path)})
		if len(violations) > 0 {
			return // a policy file
		}
		w := *w
		w.t = t
		const branch = "claude-ops/fix/fuzz"
		made, err := w.p.Commit(t.Context(), gitprovider.CommitRequest{Snapshot: w.snapshot(w.p, path), Branch: branch,
			Changes: set, Message: "m"})
		w.must(err)
		defer func() { w.must(w.p.DeleteBranch(t.Context(), w.Ref(), branch, made.ID)) }()
		if got, want := w.git("ls-tree", "-r", "-z", "--name-only",
			made.ID), path+"\x00zz-base.md\x00"; got != want && got != "zz-base.md\x00"+path+"\x00" {
			t.Fatalf("git holds %q, approved was %q", got, path)
		}
	})
}

func TestABranchAtTheNameOfOurFolderIsNamed(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	w.git("branch", "claude-ops", "main")
	_, err := w.p.Commit(t.Context(), w.request("claude-ops/fix/x", disk("new\n")))
	w.refused(err, fault.RepoNotAllowed, "rename or remove", "a branch claude-ops")
}
