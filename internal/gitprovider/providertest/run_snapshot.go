package providertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func snapshotTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"names repository, default branch and base commit":      snapshotNames,
		"reads the base branch that was asked for":              snapshotBase,
		"lists each existing folder above the paths":            snapshotTree,
		"shows links and submodules as such, without following": snapshotKinds,
		"holds the bytes of regular files":                      snapshotContents,
		"holds no bytes that were not asked for":                snapshotNoContents,
		"leaves out contents that are too large":                snapshotLarge,
		"holds the tips of the branches that exist":             snapshotTips,
		"shows the open pull requests that may be ours":         snapshotOpen,
		"shows what was closed without merging since":           snapshotClosed,
		"holds folders whose files are listed":                  snapshotListed,
		"holds ids by which blobs are read":                     snapshotBlobs,
		"changes nothing":                                       snapshotWritesNothing,
		"of an empty repository is not found":                   snapshotEmpty,
		"of a missing base branch is not found":                 snapshotNoBase,
	}
}

func snapshotNames(t *testing.T, h Harness) {
	s := newScene(t, h)
	snap := s.Look()
	s.Same("repository", snap.Repo.String(), s.Ref().String())
	s.Same("default branch", snap.DefaultBranch, MainBranch)
	s.Same("base", snap.Base, MainBranch)
	s.Same("base commit", snap.BaseCommit, s.Branches()[MainBranch])
	if snap.URL == "" || snap.Archived || snap.Fork {
		t.Fatalf("URL %q, archived %v, fork %v; want a URL and a plain repository", snap.URL, snap.Archived, snap.Fork)
	}
}

// snapshotBlobs holds that blobs are read by their ids, those of former commits too.
func snapshotBlobs(t *testing.T, h Harness) {
	s := newScene(t, h, append(seed(), File{Path: "checks/large.md",
		Content: strings.Repeat("x", gitprovider.MaxContentRead+1)})...)
	reader := s.p.(gitprovider.BlobReader)
	before := s.Look("checks/disk.md", "checks/large.md")
	s.Push(MainBranch, File{Path: "checks/disk.md", Content: "another\n"})
	old, err := reader.ReadBlob(s.ctx, s.Ref(), before.Tree["checks/disk.md"].ID)
	s.Must(err)
	s.Same("the former content", string(old), string(before.Contents[Path(t, "checks/disk.md")]))
	_, err = reader.ReadBlob(s.ctx, s.Ref(), before.Tree["checks/large.md"].ID)
	s.Same("code of one that is too large", fault.CodeOf(err), fault.ContentDenied)
	for _, id := range []string{strings.Repeat("1", len(before.BaseCommit)), "../main", before.BaseCommit} {
		_, err = reader.ReadBlob(s.ctx, s.Ref(), id)
		s.Same("code of "+id, fault.CodeOf(err), fault.NotFound)
	}
}

// snapshotListed holds that plain files are listed, with ids and sizes, and links and submodules are not.
func snapshotListed(t *testing.T, h Harness) {
	s := newScene(t, h, append(seed(), File{Path: "checks/deep/er/a.md", Content: "a\n"},
		File{Path: "checks/run.md", Content: "x\n", Executable: true},
		File{Path: "checks/link.md", Content: "disk.md", Kind: gitprovider.KindSymlink})...)
	lister, at := s.p.(gitprovider.FileLister), s.Look()
	for _, folder := range []string{"checks", ""} {
		files, complete, err := lister.ListFiles(s.ctx, at, folder)
		s.Must(err)
		var paths []string
		for _, f := range files {
			paths = append(paths, f.Path)
			if f.Path == "checks/deep/er/a.md" {
				s.Same("size and id", fmt.Sprint(f.Size, f.ID), fmt.Sprint(2, gitprovider.BlobID([]byte("a\n"), at.BaseCommit)))
			}
		}
		want := slices.Contains(paths, "checks/deep/er/a.md") && slices.Contains(paths, "checks/run.md") &&
			!slices.Contains(paths, "checks/link.md") && slices.IsSorted(paths) && complete
		if outside := slices.ContainsFunc(paths, func(p string) bool { return !strings.HasPrefix(p, "checks/") }); !want ||
			outside != (folder == "") {
			t.Errorf("%q: complete %v, %q", folder, complete, paths)
		}
	}
}

func snapshotBase(t *testing.T, h Harness) {
	s := newScene(t, h)
	tip := s.Push("stable", File{Path: "checks/old.md", Content: "old\n"})
	snap := s.snapshot(gitprovider.SnapshotQuery{Repo: s.Ref(), Base: "stable",
		Paths: []gitprovider.Path{Path(t, "checks/old.md")}, Contents: true})
	s.Same("base", snap.Base, "stable")
	s.Same("base commit", snap.BaseCommit, tip)
	s.Same("default branch", snap.DefaultBranch, MainBranch)
	s.Same("content", string(snap.Contents[Path(t, "checks/old.md")]), "old\n")
}

func snapshotTree(t *testing.T, h Harness) {
	files := append(seed(), File{Path: ".claude-ops/checks/a.md", Content: "a\n"},
		File{Path: "other/deep/b.md", Content: "b\n"})
	s := newScene(t, h, files...)
	snap := s.Look("checks/new.md", ".claude-ops/checks/new.md", "missing/new.md")
	want := []string{
		".claude-ops", ".claude-ops/checks", ".claude-ops/checks/a.md", "README.md", "checks", "checks/disk.md",
		"checks/memory.md", "other", "playbooks",
	}
	s.Same("tree", slices.Sorted(maps.Keys(snap.Tree)), want)
	s.Same("folder", snap.Tree["checks"].Kind, gitprovider.KindDir)
	disk := snap.Tree["checks/disk.md"]
	s.Same("file", disk, gitprovider.Entry{Kind: gitprovider.KindFile,
		ID: gitprovider.BlobID([]byte("# Disk\n\ndf -h\n"), snap.BaseCommit)})
	s.Same("root without paths", slices.Sorted(maps.Keys(s.Look().Tree)),
		[]string{".claude-ops", "README.md", "checks", "other", "playbooks"})
	if !s.Look("playbooks/new.md").Tree["playbooks/restart.md"].Executable {
		t.Fatal("the executable bit is not shown")
	}
}

func snapshotKinds(t *testing.T, h Harness) {
	s := newScene(t, h,
		File{Path: "target/a.md", Content: "a\n"},
		File{Path: "checks", Kind: gitprovider.KindSymlink, Content: "target"},
		File{Path: "playbooks/link.md", Kind: gitprovider.KindSymlink, Content: "../target/a.md"},
		File{Path: "playbooks/vendor", Kind: gitprovider.KindSubmodule},
	)
	snap := s.Look("checks/a.md", "playbooks/link.md", "playbooks/vendor/b.md")
	for path, want := range map[string]gitprovider.EntryKind{
		"checks": gitprovider.KindSymlink, "playbooks/link.md": gitprovider.KindSymlink,
		"playbooks/vendor": gitprovider.KindSubmodule,
	} {
		s.Same(path, snap.Tree[path].Kind, want)
	}
	if _, followed := snap.Tree["checks/a.md"]; followed || len(snap.Contents) > 0 {
		t.Fatalf("a link was followed: tree %v, %d contents", snap.Tree, len(snap.Contents))
	}
}

func snapshotContents(t *testing.T, h Harness) {
	s := newScene(t, h)
	snap := s.Look("checks/disk.md", "checks/none.md")
	s.Same("contents", len(snap.Contents), 1)
	s.Same("disk", string(snap.Contents[Path(t, "checks/disk.md")]), "# Disk\n\ndf -h\n")
}

func snapshotNoContents(t *testing.T, h Harness) {
	s := newScene(t, h)
	snap := s.snapshot(gitprovider.SnapshotQuery{
		Repo: s.Ref(), Paths: []gitprovider.Path{Path(t, "checks/disk.md")},
	})
	s.Same("contents", len(snap.Contents), 0)
	s.Same("kind", snap.Tree["checks/disk.md"].Kind, gitprovider.KindFile)
}

func snapshotLarge(t *testing.T, h Harness) {
	atLimit, above := strings.Repeat("x", gitprovider.MaxContentRead), strings.Repeat("x", gitprovider.MaxContentRead+1)
	s := newScene(t, h, File{Path: "checks/at.md", Content: atLimit}, File{Path: "checks/above.md", Content: above})
	snap := s.Look("checks/at.md", "checks/above.md")
	if _, read := snap.Contents[Path(t, "checks/above.md")]; read {
		t.Error("a file above the limit was read")
	}
	s.Same("file at the limit", len(snap.Contents[Path(t, "checks/at.md")]), gitprovider.MaxContentRead)
	s.Same("file above the limit is in the tree", snap.Tree["checks/above.md"].Kind, gitprovider.KindFile)
}

func snapshotTips(t *testing.T, h Harness) {
	s := newScene(t, h)
	tip := s.Push("claude-ops/fix/taken", File{Path: "checks/x.md", Content: "x\n"})
	s.Push("claude-ops/fix/other", File{Path: "checks/y.md", Content: "y\n"})
	snap := s.snapshot(gitprovider.SnapshotQuery{
		Repo: s.Ref(), Branches: []string{"claude-ops/fix/taken", "claude-ops/fix/free", "claude-ops/fix", "taken"},
	})
	s.Same("tips", snap.Tips, map[string]string{"claude-ops/fix/taken": tip})
}

func snapshotOpen(t *testing.T, h Harness) {
	s := newScene(t, h)
	mine := s.Propose("claude-ops/check/disk")
	s.Push("feature/labelled", File{Path: "checks/l.md", Content: "l\n"})
	labelled := s.OpenPR("feature/labelled", "By a person, labelled", gitprovider.LabelOurs)
	s.Push("claude-ops/fix/unlabelled", File{Path: "checks/u.md", Content: "u\n"})
	unlabelled := s.OpenPR("claude-ops/fix/unlabelled", "Its label got lost")
	s.Push("feature/foreign", File{Path: "checks/f.md", Content: "f\n"})
	s.OpenPR("feature/foreign", "Somebody else's", "bug")
	s.Push("feature/marked", File{Path: "checks/m.md", Content: "m\n"})
	marked := s.OpenPR("feature/marked", "Has a mark, true or not")
	s.SetBody(marked, "By us?\n\n"+gitprovider.MarkOpening+"v1 x y -->\n")
	closed := s.Propose("claude-ops/check/closed", Create("checks/c.md", "c\n"))
	s.Close(closed.Number)

	open := s.Look().Open
	s.Same("numbers", slices.Sorted(slices.Values(numbers(open))), []int{mine.Number, labelled, unlabelled, marked})
	for _, pr := range open {
		if pr.Number == mine.Number {
			s.Same("paths", pr.Paths, []string{"checks/disk.md"})
			s.Same("branch", pr.Branch, "claude-ops/check/disk")
			s.Same("head", pr.HeadCommit, s.Branches()[pr.Branch])
			s.Same("state", pr.State, gitprovider.StateOpen)
		}
	}
}

func snapshotClosed(t *testing.T, h Harness) {
	s := newScene(t, h)
	rejected := s.Propose("claude-ops/check/rejected", Create("checks/r.md", "r\n"))
	merged := s.Propose("claude-ops/check/merged", Create("checks/m.md", "m\n"))
	s.Propose("claude-ops/check/open", Create("checks/o.md", "o\n"))
	s.Close(rejected.Number)
	s.Merge(merged.Number)

	closedAt := s.Status(rejected.Number).ClosedAt
	ask := func(since time.Time) []gitprovider.PullRequest {
		return s.snapshot(gitprovider.SnapshotQuery{Repo: s.Ref(), ClosedSince: since}).Closed
	}
	got := ask(closedAt.Add(-time.Minute))
	s.Same("closed in the last minute", numbers(got), []int{rejected.Number})
	s.Same("its paths", got[0].Paths, []string{"checks/r.md"})
	s.Same("its state", got[0].State, gitprovider.StateClosed)
	s.Same("closed since a later time", numbers(ask(closedAt.Add(time.Minute))), []int{})
	s.Same("without a time", numbers(ask(time.Time{})), []int{})
}

func snapshotWritesNothing(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Propose("claude-ops/check/disk")
	before, list := s.Branches(), s.List()
	s.Look("checks/disk.md", "checks/new.md")
	s.Same("branches", s.Branches(), before)
	s.Same("pull requests", s.List(), list)
}

func snapshotEmpty(t *testing.T, h Harness) {
	s := NewScene(t, h.NewRepo(t))
	for _, filesOnly := range []bool{false, true} {
		_, err := s.p.Snapshot(s.ctx, gitprovider.SnapshotQuery{Repo: s.Ref(), FilesOnly: filesOnly})
		s.Code(err, fault.NotFound)
	}
}

func snapshotNoBase(t *testing.T, h Harness) {
	s := newScene(t, h)
	_, err := s.p.Snapshot(s.ctx, gitprovider.SnapshotQuery{Repo: s.Ref(), Base: "releases/1.x"})
	s.Code(err, fault.NotFound)
	if !strings.Contains(err.Error(), "releases/1.x") {
		t.Errorf("%q does not name the branch", err)
	}
	if !strings.Contains(err.Error(), `leave base_branch out for its default branch "main"`) {
		t.Errorf("%q does not say which branch there is", err)
	}
}

// othersTests returns the tests about pull requests that are not ours: of people, and from forks.
func othersTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"are shown with their files if they are asked for":        othersShown,
		"are not shown if nobody asks":                            othersNotAsked,
		"into another base branch are not shown":                  othersBase,
		"from a fork are none of ours, whatever label they carry": othersFork,
		"that have a mark and no label are in the list":           othersMarked,
	}
}

// foreign takes a snapshot with the pull requests of others.
func (s *Scene) foreign() *gitprovider.Snapshot {
	s.t.Helper()
	return s.snapshot(gitprovider.SnapshotQuery{
		Repo: s.Ref(), Paths: []gitprovider.Path{Path(s.t, "checks/disk.md")}, Foreign: true,
	})
}

func othersShown(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Propose("claude-ops/check/disk")
	s.Push("feature/person", File{Path: "checks/memory.md", Content: "by a person\n"})
	number := s.OpenPR("feature/person", "A person's")
	snap := s.foreign()
	s.Same("numbers", numbers(snap.Foreign), []int{number})
	s.Same("paths", snap.Foreign[0].Paths, []string{"checks/memory.md"})
	s.Same("unread", snap.ForeignUnread, 0)
	s.Same("ours", len(snap.Open), 1)
	s.Push("feature/person", File{Path: "checks/disk.md", Content: "by a person\n"})
	s.Same("paths after a push", s.foreign().Foreign[0].Paths, []string{"checks/disk.md", "checks/memory.md"})
	s.Close(number)
	s.Same("after it was closed", len(s.foreign().Foreign), 0)
}

func othersNotAsked(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Push("feature/person", File{Path: "checks/disk.md", Content: "by a person\n"})
	s.OpenPR("feature/person", "A person's")
	snap := s.Look("checks/disk.md")
	s.Same("foreign", len(snap.Foreign)+snap.ForeignUnread, 0)
}

func othersBase(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Push("stable", File{Path: "checks/old.md", Content: "old\n"})
	s.Push("feature/person", File{Path: "checks/disk.md", Content: "by a person\n"})
	s.OpenPR("feature/person", "A person's")
	snap := s.snapshot(gitprovider.SnapshotQuery{Repo: s.Ref(), Base: "stable", Foreign: true})
	s.Same("foreign", len(snap.Foreign)+snap.ForeignUnread, 0)
}

func othersFork(t *testing.T, h Harness) {
	s := newScene(t, h)
	people, can := s.World.(Public)
	if !can { // the host has no forks
		return
	}
	const branch = "claude-ops/check/disk"
	theirs := people.OpenFromFork(branch, "From a fork", []string{gitprovider.LabelOurs},
		File{Path: "checks/disk.md", Content: "eve was here\n"})
	if pr := s.Find(branch); pr != nil {
		t.Errorf("found %+v for our branch of the same name", pr)
	}
	s.Same("list", numbers(s.List()), []int{})
	snap := s.foreign()
	s.Same("ours", numbers(snap.Open), []int{})
	s.Same("foreign", numbers(snap.Foreign), []int{theirs})
	pr := snap.Foreign[0]
	s.Same("paths", pr.Paths, []string{"checks/disk.md"})
	if !pr.Fork || pr.Author != "eve" || pr.Branch == branch {
		t.Errorf("fork %v, author %q, branch %q", pr.Fork, pr.Author, pr.Branch)
	}
	s.Same("status", s.Status(theirs).Fork, true)
	mine := s.Propose(branch, Create("checks/mine.md", "mine\n"))
	s.Same("list with ours", numbers(s.List()), []int{mine.Number})
	s.Same("found by its head", s.Find(branch).Number, mine.Number)
	s.Close(theirs)
	s.Same("closed", len(s.lookClosed().Closed), 0)
}

// lookClosed takes a snapshot with all that was ever closed.
func (s *Scene) lookClosed() *gitprovider.Snapshot {
	s.t.Helper()
	return s.snapshot(gitprovider.SnapshotQuery{Repo: s.Ref(), ClosedSince: when().AddDate(-10, 0, 0)})
}

func othersMarked(t *testing.T, h Harness) {
	s := newScene(t, h)
	labelled := s.Propose("claude-ops/check/disk")
	s.Push("claude-ops/fix/marked", File{Path: "checks/m.md", Content: "m\n"})
	marked := s.OpenPR("claude-ops/fix/marked", "Its label got lost")
	s.SetBody(marked, "By us?\n\n"+gitprovider.MarkOpening+"v1 x y -->\n")
	s.Push("claude-ops/fix/plain", File{Path: "checks/p.md", Content: "p\n"})
	s.OpenPR("claude-ops/fix/plain", "Neither label nor mark")
	prs := s.List()
	s.Same("numbers", numbers(prs), []int{labelled.Number, marked})
	s.Same("paths", prs[1].Paths, []string{"checks/m.md"})
	s.Same("labels", slices.Contains(prs[1].Labels, gitprovider.LabelOurs), false)
}
