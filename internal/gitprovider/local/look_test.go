package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

func TestAHeadThatWasSetBackIsNotMerged(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	w.git("update-ref", "refs/heads/"+pr.Branch, "main")
	status := w.state(pr.Number)
	if status.State != gitprovider.StateOpen || len(status.Paths) != 0 {
		t.Errorf("status %+v", status)
	}
}

func TestARewrittenHeadThatWasMergedByHandIsMerged(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	amended := strings.TrimSpace(w.git("commit-tree", "-p", "main", "-m", "amended", pr.HeadCommit+"^{tree}"))
	w.git("update-ref", "refs/heads/"+pr.Branch, amended)
	w.git("update-ref", "refs/heads/main", amended)
	if got := w.state(pr.Number).State; got != gitprovider.StateMerged {
		t.Errorf("state %s", got)
	}
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
			if got := w.state(pr.Number).State; got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}

func TestPullRequestsSurviveTheLossOfTheirBase(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
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
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
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
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
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
	_, err = w.merge(sound.Number, false)
	w.must(err)
	_, err = w.merge(broken.Number, true)
	w.refused(err, fault.UpstreamError, "#1", broken.Branch, broken.HeadCommit[:12])
	_, err = w.p.Status(t.Context(), w.Ref(), broken.Number)
	w.refused(err, fault.UpstreamError, "#1", broken.Branch)
	w.DeleteBranch(broken.Branch)
	if got := w.state(broken.Number).State; got != gitprovider.StateClosed {
		t.Errorf("without its branch it is %s", got)
	}
}
