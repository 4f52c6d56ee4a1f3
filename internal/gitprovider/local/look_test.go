package local_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
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
