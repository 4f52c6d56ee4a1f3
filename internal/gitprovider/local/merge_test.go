package local_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

func (w *world) merge(number int, force bool) (local.Merged, error) {
	w.t.Helper()
	return w.review.Merge(w.t.Context(), w.Ref(), number,
		local.MergeNote{Note: local.Note{Who: "Ann Lee", Body: "Good."}, Force: force})
}

func (w *world) mustMerge(number int, force bool) local.Merged {
	w.t.Helper()
	merged, err := w.merge(number, force)
	w.must(err)
	return merged
}

// refusesMerge demands that a merge is a conflict, even by force, and moves no branch.
func (w *world) refusesMerge(number int, words ...string) {
	w.t.Helper()
	before := w.Branches()
	_, err := w.merge(number, true)
	w.refused(err, fault.Conflict, words...)
	if after := w.Branches(); !maps.Equal(before, after) {
		w.t.Errorf("branches before: %v, after: %v", before, after)
	}
}

func TestMergeMakesACommitWithTwoParents(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("# Disk\n\nONE\ntwo\nthree\n"))
	base := w.Push("main", providertest.File{Path: "checks/disk.md", Content: "# Disk\n\none\ntwo\nTHREE\n"})
	merged := w.mustMerge(pr.Number, false)
	if got := strings.Join(w.Parents(merged.Commit), " "); got != base+" "+pr.HeadCommit {
		t.Errorf("parents %s", got)
	}
	branches := w.Branches()
	if branches["main"] != merged.Commit || branches[pr.Branch] != "" || !merged.BranchDeleted ||
		len(merged.Warnings) > 0 {
		t.Errorf("branches %v, %+v", branches, merged)
	}
	if got := w.git("show", "main:checks/disk.md"); got != "# Disk\n\nONE\ntwo\nTHREE\n" {
		t.Errorf("merged file %q", got)
	}
	want := "Ann Lee|ann-lee@localhost|Claude Ops|Merge pull request #1 from claude-ops/check/disk\n\nTitle of " +
		"claude-ops/check/disk\n\nGood.\n\nMerged-by: Ann Lee"
	if got := strings.TrimSpace(w.git("log", "-1", "--format=%an|%ae|%cn|%B", "main")); got != want {
		t.Errorf("commit %q, want %q", got, want)
	}
	status := w.state(pr.Number)
	if status.State != gitprovider.StateMerged || status.HeadCommit != pr.HeadCommit || status.ClosedAt.IsZero() {
		t.Errorf("status %+v", status)
	}
}

func TestMergeRefusesAConflictAndNamesTheFiles(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("ours\n"))
	w.Push("main", providertest.File{Path: "checks/disk.md", Content: "theirs\n"})
	w.refusesMerge(pr.Number, "checks/disk.md")
}

func TestMergeListensToReviewers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reviews string // author:state, in order
		objects string // "" merges
	}{
		"nobody said anything":                      {"", ""},
		"a comment is not a verdict":                {"bob:commented", ""},
		"changes were asked for":                    {"bob:changes_requested", "bob"},
		"a comment after it changes nothing":        {"bob:changes_requested bob:commented", "bob"},
		"another person's approval changes nothing": {"bob:changes_requested cid:approved", "bob"},
		"the same person's approval does":           {"bob:changes_requested bob:approved", ""},
		"the latest verdict counts":                 {"bob:approved bob:changes_requested", "bob"},
		"a dismissed verdict does not count":        {"bob:changes_requested bob:dismissed", ""},
		"everybody who objects is named":            {"cid:changes_requested bob:changes_requested", "bob, cid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, pr := proposed(t, bare())
			for _, review := range strings.Fields(test.reviews) {
				author, state, _ := strings.Cut(review, ":")
				w.Review(pr.Number, author, gitprovider.ReviewState(state), "text")
			}
			_, err := w.merge(pr.Number, false)
			if test.objects == "" {
				w.must(err)
				return
			}
			w.refused(err, fault.Conflict, test.objects+" asked for changes")
			w.mustMerge(pr.Number, true)
		})
	}
}

func TestMergeWantsTheHeadThatWasOpenedOrApproved(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	w.must(w.review.Approve(t.Context(), w.Ref(), pr.Number, ann()))
	w.Push(pr.Branch, providertest.File{Path: "checks/sneaked-in.md", Content: "x\n"})
	_, err := w.merge(pr.Number, false)
	w.refused(err, fault.Conflict, "opened or last approved")
	w.must(w.review.Comment(t.Context(), w.Ref(), pr.Number, local.Note{Who: "Ann", Body: "hm"}))
	_, err = w.merge(pr.Number, false)
	w.refused(err, fault.Conflict, "opened or last approved")
	w.must(w.review.Approve(t.Context(), w.Ref(), pr.Number, ann()))
	w.mustMerge(pr.Number, false)
	if paths := w.state(pr.Number).Paths; len(paths) != 2 {
		t.Errorf("recorded paths %v", paths)
	}
}

func TestMergeLeavesABaseThatIsCheckedOutToThePerson(t *testing.T) {
	t.Parallel()
	w := home(t, ordinary())
	w.git("reset", "--quiet", "--hard")
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	w.refusesMerge(pr.Number, "checked out in "+w.dir, "git merge --no-ff "+pr.Branch)
	if got := w.git("status", "--porcelain"); got != "" {
		t.Errorf("git status says %q", got)
	}
	w.git("merge", "--quiet", "--no-ff", "-m", "by hand", pr.Branch)
	w.git("branch", "--quiet", "-d", pr.Branch)
	w.wantState(pr.Number, gitprovider.StateMerged)
}

// A merge follows renames: what a person moved on the base, git would write to its new place.
func TestMergeWritesOnlyWhatThePullRequestShows(t *testing.T) {
	t.Parallel()
	long := "# Disk\n\none\ntwo\nthree\nfour\nfive\n"
	for name, c := range map[string]struct {
		kind    kind
		moved   string // where a person moves checks/disk.md on the base; "" leaves it
		refused []string
	}{
		"a workflow":        {bare(), ".github/workflows/disk.yml", []string{".github/workflows/disk.yml", "main into"}},
		"a prompt":          {bare(), "prompts/disk.md", []string{"prompts/disk.md", "does not show"}},
		"another check":     {bare(), "checks/sub/disk.md", []string{"checks/sub/disk.md"}},
		"left where it was": {bare(), "", nil},
		"a base that is checked out, where git merge would follow, too": {ordinary(), "prompts/disk.md",
			[]string{"prompts/disk.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.kind, providertest.File{Path: "checks/disk.md", Content: long},
				providertest.File{Path: "README.md", Content: "# Home\n"})
			pr := w.propose("claude-ops/check/disk", disk(strings.Replace(long, "two", "TWO", 1)))
			if c.moved == "" {
				w.mustMerge(pr.Number, true)
				return
			}
			w.moveOnMain("checks/disk.md", c.moved, long)
			status := w.state(pr.Number)
			w.refusesMerge(pr.Number, c.refused...)
			if status.Mergeable == nil || *status.Mergeable {
				t.Error("it is shown as mergeable")
			}
			if c.kind.ordinary {
				return
			}
			// As the message says: main is merged into the branch, which then shows where the change goes.
			tree := strings.TrimSpace(w.git("merge-tree", "--write-tree", "main", pr.Branch))
			both := strings.TrimSpace(w.git("commit-tree", "-p", pr.HeadCommit, "-p", "main", "-m", "main", tree))
			w.git("update-ref", "refs/heads/"+pr.Branch, both)
			if paths := w.state(pr.Number).Paths; len(paths) != 1 || paths[0] != c.moved {
				t.Errorf("it shows %q", paths)
			}
			w.mustMerge(pr.Number, true)
		})
	}
}

// Who calls may refuse files that a merge would write, such as those that the policy does not allow any more.
func TestAMergeAsksWhetherItMayWrite(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{bare(), ordinary()} {
		w := newWorld(t, k, providertest.File{Path: "checks/disk.md", Content: "one\n"})
		pr := w.propose("claude-ops/check/disk", disk("two\n"))
		before := w.git("for-each-ref")
		var asked []string
		_, err := w.review.Merge(t.Context(), w.Ref(), pr.Number, local.MergeNote{Note: local.Note{Who: "ann"}, Force: true,
			Writes: func(paths []string) error {
				asked = paths
				return fault.New(fault.ScopeDenied, "not these")
			}})
		w.refused(err, fault.ScopeDenied, "not these")
		if after := w.git("for-each-ref"); after != before || len(asked) != 1 || asked[0] != "checks/disk.md" {
			t.Errorf("asked about %q; before:\n%s\nafter:\n%s", asked, before, after)
		}
		w.wantState(pr.Number, gitprovider.StateOpen)
	}
}

// A person moves the file on main at the last moment: the merge is tried again, and looks again at what it would write.
func TestAMergeThatIsTriedAgainFollowsNoRename(t *testing.T) {
	t.Parallel()
	long := "# Disk\n\none\ntwo\nthree\nfour\nfive\n"
	w := newWorld(t, bare(), providertest.File{Path: "checks/disk.md", Content: long})
	pr := w.propose("claude-ops/check/disk", disk(strings.Replace(long, "two", "TWO", 1)))
	w.moveOnMain("checks/disk.md", ".github/workflows/disk.yml", long)
	moved, was := w.Branches()["main"], strings.TrimSpace(w.git("rev-parse", "main~2"))
	w.git("update-ref", "refs/heads/main", was)
	w.review = local.NewReviewer(w.disturbed(`
case "$*" in *update-ref*) GIT --git-dir=DIR update-ref refs/heads/main MOVED WAS;; esac`, "MOVED", moved, "WAS", was))
	_, err := w.merge(pr.Number, true)
	w.refused(err, fault.Conflict, ".github/workflows/disk.yml", "does not show")
	if got := w.Branches()["main"]; got != moved {
		t.Errorf("main is at %s, want the person's %s", got, moved)
	}
}

// moveOnMain moves a file on the base, as a person does with git mv.
func (w *world) moveOnMain(from, to, content string) {
	w.t.Helper()
	w.Push("main", providertest.File{Path: to, Content: content})
	w.gitInput("commit refs/heads/main\ncommitter Person <person@example.org> 1 +0000\ndata 5\nmoved\n"+
		"from refs/heads/main^0\nD "+from+"\n", "fast-import", "--quiet")
}

func TestMergeMovesNoBaseUnderARebase(t *testing.T) {
	t.Parallel()
	for what, file := range map[string]string{"rebase": "rebase-merge/head-name",
		"rebase of patches": "rebase-apply/head-name", "bisect": "BISECT_START"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := home(t, bare())
			linked := t.TempDir() + "/linked"
			w.git("worktree", "add", "--quiet", "--detach", linked, "main")
			pr := w.propose("claude-ops/check/disk", disk("new\n"))
			path := filepath.Join(w.dir, "worktrees", "linked", filepath.FromSlash(file))
			w.must(os.MkdirAll(filepath.Dir(path), 0o755))
			name := "refs/heads/main\n"
			if what == "bisect" {
				name = "main\n"
			}
			w.must(os.WriteFile(path, []byte(name), 0o600))
			w.refusesMerge(pr.Number, "git "+strings.Fields(what)[0], "worktrees/linked")
		})
	}
}

// A rebase that a person has begun keeps its branch until it ends, though HEAD is detached meanwhile.
func TestMergeWaitsForTheRebaseOfAPerson(t *testing.T) {
	t.Parallel()
	w := home(t, ordinary())
	w.git("reset", "--quiet", "--hard")
	w.git("commit", "--quiet", "--allow-empty", "-m", "mine")
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	w.git("-c", "sequence.editor=sed -i 1ibreak", "rebase", "--quiet", "--interactive", "HEAD~1")
	w.refusesMerge(pr.Number, "main", "a git rebase that has not ended")
	w.git("rebase", "--continue")
	w.git("checkout", "--quiet", "--detach")
	w.mustMerge(pr.Number, false)
}

func TestMergeSaysWhichHooksDidNotRun(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	w.must(os.MkdirAll(filepath.Join(w.dir, "hooks"), 0o755))
	w.program(filepath.Join(w.dir, "hooks", "post-receive"), "exit 1")
	merged := w.mustMerge(pr.Number, false)
	if len(merged.Warnings) != 1 || !strings.Contains(merged.Warnings[0], "did not run: post-receive") {
		t.Errorf("warnings %q", merged.Warnings)
	}
}

func TestMergeKnowsLinkedWorkTrees(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	first, second := w.propose("claude-ops/check/first", disk("new\n")), w.propose("claude-ops/check/second",
		providertest.Create("checks/x.md", "x\n"))
	linked := t.TempDir() + "/linked"
	w.git("worktree", "add", "--quiet", linked, first.Branch)
	merged := w.mustMerge(first.Number, false)
	if merged.BranchDeleted || len(merged.Warnings) != 1 || w.Branches()[first.Branch] == "" {
		t.Errorf("a branch in use was deleted: %+v", merged)
	}
	w.git("worktree", "add", "--quiet", linked+"2", "main")
	_, err := w.merge(second.Number, false)
	w.refused(err, fault.Conflict, linked+"2")
}

func TestOneOfSeveralMergesWins(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	const racers = 5
	numbers := make([]int, racers)
	for i := range numbers {
		name := string(rune('a' + i))
		numbers[i] = w.propose("claude-ops/check/"+name, providertest.Create("checks/"+name+".md", name+"\n")).Number
	}
	// Every merge below is computed for the base as it is now or as another merge leaves it; who loses is tried again.
	var wg sync.WaitGroup
	errs := make([]error, racers)
	for i, number := range numbers {
		wg.Go(func() {
			_, errs[i] = w.review.Merge(t.Context(), w.Ref(), number, local.MergeNote{Note: ann()})
		})
	}
	wg.Wait()
	for _, err := range errs {
		w.must(err)
	}
	if got := strings.Fields(w.git("ls-tree", "-r", "--name-only", "main", "checks/")); len(got) != racers+1 {
		t.Errorf("main holds %v: a merge was lost", got)
	}
	if got := strings.Fields(w.git("rev-list", "--merges", "main")); len(got) != racers {
		t.Errorf("%d merge commits", len(got))
	}
}

func TestAMergeOfABaseThatMovesMeanwhileIsRefused(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	// A git that lets somebody push right before the base is moved.
	w.review = local.NewReviewer(w.disturbed(`
case "$*" in *update-ref*)
	main=$(GIT --git-dir=DIR rev-parse main)
	other=$(GIT -c user.name=x -c user.email=x --git-dir=DIR commit-tree -p $main -m other $main^{tree})
	GIT --git-dir=DIR update-ref refs/heads/main $other;;
esac`))
	_, err := w.merge(pr.Number, true)
	w.refused(err, fault.Conflict, "moved meanwhile", "run it again")
	if got := strings.TrimSpace(w.git("log", "-1", "--format=%s", "main")); got != "other" {
		t.Errorf("main ends with %q: the other commit was lost", got)
	}
	w.wantState(pr.Number, gitprovider.StateOpen)
}

// A process that is killed right after the base moved leaves neither a merged branch nor an open pull request.
func TestAMergeThatIsCutOffLeavesNoBranch(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	w.review = local.NewReviewer(w.disturbed(`
case "$*" in *update-ref*) [ ! -e MOVED ] || exit 1; touch MOVED;; esac`, "MOVED", filepath.Join(t.TempDir(), "moved")))
	w.records.broken = fault.Wrap(errors.New("killed"), fault.Internal, "nothing is recorded")
	merged := w.mustMerge(pr.Number, false)
	if branches := w.Branches(); branches[pr.Branch] != "" || branches["main"] != merged.Commit {
		t.Errorf("branches %v", branches)
	}
	w.records.broken = nil
	w.wantState(pr.Number, gitprovider.StateMerged)
}

func TestAMergeThatCouldNotBeRecordedIsFoundLater(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	w.records.broken = fault.Wrap(errors.New("disk full"), fault.Internal, "the store failed")
	merged := w.mustMerge(pr.Number, false)
	if len(merged.Warnings) != 1 || !strings.Contains(merged.Warnings[0], "not recorded") {
		t.Errorf("warnings %q", merged.Warnings)
	}
	w.records.broken = nil
	w.wantState(pr.Number, gitprovider.StateMerged)
}

func TestUnrelatedHistoriesCannotBeMerged(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	root := strings.TrimSpace(w.git("commit-tree", "-m", "unrelated", "main^{tree}"))
	w.git("update-ref", "refs/heads/claude-ops/fix/unrelated", root)
	number := w.OpenPR("claude-ops/fix/unrelated", "Unrelated", gitprovider.LabelOurs)
	status := w.state(number)
	if status.Mergeable == nil || *status.Mergeable || len(status.Paths) != 2 {
		t.Errorf("status %+v", status)
	}
	w.refusesMerge(number, "in common")
}

func TestAHeadThatWasSetBackIsNotMerged(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	w.git("update-ref", "refs/heads/"+pr.Branch, "main")
	status := w.state(pr.Number)
	if status.State != gitprovider.StateOpen || len(status.Paths) != 0 {
		t.Errorf("status %+v", status)
	}
}

func TestARewrittenHeadThatWasMergedByHandIsMerged(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	amended := strings.TrimSpace(w.git("commit-tree", "-p", "main", "-m", "amended", pr.HeadCommit+"^{tree}"))
	w.git("update-ref", "refs/heads/"+pr.Branch, amended)
	w.git("update-ref", "refs/heads/main", amended)
	w.wantState(pr.Number, gitprovider.StateMerged)
}

// Merged means that the base holds the change, no matter how it got there.
func TestMergedIsWhatTheBaseHolds(t *testing.T) {
	t.Parallel()
	const was = "# Disk\n\none\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	onMain := func(w *world, content string) {
		w.Push("main", providertest.File{Path: "checks/disk.md", Content: content})
	}
	ours := strings.Replace(was, "two", "TWO", 1)
	both := strings.Replace(ours, "seven", "SEVEN", 1)
	for name, c := range map[string]struct {
		person func(w *world, branch string)
		want   gitprovider.State
	}{
		"main's head is forced onto the branch": {func(w *world, branch string) {
			onMain(w, strings.Replace(was, "seven", "SEVEN", 1))
			w.git("update-ref", "refs/heads/"+branch, "main")
		}, gitprovider.StateOpen},
		"the branch is deleted": {func(w *world, branch string) { w.DeleteBranch(branch) }, gitprovider.StateClosed},
		"the branch is deleted, and main changes something else in the file": {func(w *world, branch string) {
			onMain(w, strings.Replace(was, "seven", "SEVEN", 1))
			w.DeleteBranch(branch)
		}, gitprovider.StateClosed},
		"squashed": {func(w *world, branch string) {
			onMain(w, ours)
			w.DeleteBranch(branch)
		}, gitprovider.StateMerged},
		"picked onto a main that had moved in the file": {func(w *world, branch string) {
			onMain(w, strings.Replace(was, "seven", "SEVEN", 1))
			onMain(w, both)
			w.DeleteBranch(branch)
		}, gitprovider.StateMerged},
		"squashed, and the same line changed again": {func(w *world, branch string) {
			onMain(w, ours)
			onMain(w, strings.Replace(was, "two", "Two and more", 1))
			w.DeleteBranch(branch)
		}, gitprovider.StateMerged},
		"rebased onto a main that had moved, and merged by hand": {func(w *world, branch string) {
			onMain(w, strings.Replace(was, "seven", "SEVEN", 1))
			rebased := w.git("commit-tree", "-p", "main", "-m", "ours", strings.TrimSpace(w.git("merge-tree", "--write-tree",
				"main", branch)))
			w.git("update-ref", "refs/heads/main", strings.TrimSpace(rebased))
			w.DeleteBranch(branch)
		}, gitprovider.StateMerged},
		"picked, and its file moved afterwards": {func(w *world, branch string) {
			onMain(w, ours)
			w.moveOnMain("checks/disk.md", "checks/disks.md", ours)
			w.DeleteBranch(branch)
		}, gitprovider.StateMerged},
		"picked, and undone again": {func(w *world, branch string) {
			onMain(w, ours)
			onMain(w, was)
			w.DeleteBranch(branch)
		}, gitprovider.StateMerged},
		"merged, and the branch deleted": {func(w *world, branch string) {
			w.git("update-ref", "refs/heads/main", branch)
			w.DeleteBranch(branch)
		}, gitprovider.StateMerged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, bare(), providertest.File{Path: "checks/disk.md", Content: was})
			pr := w.propose("claude-ops/check/disk", disk(ours))
			c.person(w, pr.Branch)
			w.wantState(pr.Number, c.want)
		})
	}
}

func TestPullRequestsSurviveTheLossOfTheirBase(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	w.git("branch", "keep", "main")
	w.git("symbolic-ref", "HEAD", "refs/heads/keep")
	w.git("branch", "--quiet", "-D", "main")
	status := w.state(pr.Number)
	if status.State != gitprovider.StateOpen || status.Mergeable == nil || *status.Mergeable || len(status.Paths) != 1 {
		t.Errorf("status %+v", status)
	}
	_, err := w.merge(pr.Number, true)
	w.refused(err, fault.NotFound, "main")
}

func TestPathsOfBranchesThatMergedTheirBase(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	w.Push("main", providertest.File{Path: "README.md", Content: "moved on\n"})
	tree := strings.TrimSpace(w.git("merge-tree", "--write-tree", "main", pr.Branch))
	for _, name := range []string{"a", "b", "c", "d", "e",
		"f"} { // a wrong choice between two places would be right by chance
		both := strings.TrimSpace(w.git("commit-tree", "-p", pr.HeadCommit, "-p", "main", "-m", "caught up "+name, tree))
		w.git("update-ref", "refs/heads/claude-ops/check/"+name, both)
		w.OpenPR("claude-ops/check/"+name, "Caught up")
	}
	w.Push("main", providertest.File{Path: "README.md", Content: "and on\n"})
	prs, err := w.review.List(t.Context(), w.Ref(), gitprovider.StateOpen)
	w.must(err)
	if len(prs) != 7 {
		t.Errorf("%d pull requests are open", len(prs))
	}
	for _, pr := range prs {
		if len(pr.Paths) != 1 || pr.Paths[0] != "checks/disk.md" {
			t.Errorf("%s: paths %v", pr.Branch, pr.Paths)
		}
	}
}

func TestLabelsThatAreThereAreNotWritten(t *testing.T) {
	t.Parallel()
	w, pr := proposed(t, bare())
	before := w.records.updates
	w.must(w.p.Label(t.Context(), w.Ref(), pr.Number, []string{gitprovider.LabelOurs}))
	if w.records.updates != before {
		t.Error("the record was written")
	}
	if want := "file://" + w.dir + "#pr-1"; pr.URL != want {
		t.Errorf("URL %s, want %s", pr.URL, want)
	}
}

// One branch whose commit is missing keeps nobody from the other pull requests, and is named.
func TestADamagedBranchStopsItsOwnPullRequestAlone(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	broken := w.propose("claude-ops/check/broken", disk("new\n"))
	sound := w.propose("claude-ops/check/sound", providertest.Create("checks/x.md", "x\n"))
	name := "objects/" + broken.HeadCommit[:2] + "/" + broken.HeadCommit[2:]
	w.must(os.Remove(filepath.Join(w.dir, filepath.FromSlash(name))))
	p := w.provider(local.Options{TempDir: t.TempDir()}) // nothing is remembered, as in another process
	w.p, w.review = p, local.NewReviewer(p)
	prs, err := w.review.List(t.Context(), w.Ref(), gitprovider.StateOpen)
	w.must(err)
	if len(prs) != 2 || len(prs[0].Paths) == 0 {
		t.Errorf("%+v", prs)
	}
	w.propose("claude-ops/check/another", providertest.Create("checks/y.md", "y\n"))
	w.mustMerge(sound.Number, false)
	_, err = w.merge(broken.Number, true)
	w.refused(err, fault.UpstreamError, "#1", broken.Branch, broken.HeadCommit[:12])
	_, err = w.p.Status(t.Context(), w.Ref(), broken.Number)
	w.refused(err, fault.UpstreamError, "#1", broken.Branch)
	w.DeleteBranch(broken.Branch)
	w.wantState(broken.Number, gitprovider.StateClosed)
}
