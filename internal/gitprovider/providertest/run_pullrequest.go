package providertest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func pullRequestTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"is opened with all that was asked for":                      openPR,
		"is opened once for a head and a base":                       openTwice,
		"is opened anew after the first was closed":                  openAfterClose,
		"of a branch that was made again is a new one":               openAfterBranchGone,
		"of a missing head or base is not found":                     openMissing,
		"of a branch without changes is no change":                   openUnchanged,
		"is labelled, once for each label":                           labelOnce,
		"that does not exist cannot be labelled":                     labelMissing,
		"is found by its head, whatever its state":                   findByHead,
		"is found by its head, the newest if there are several":      findNewest,
		"of a branch without one is nil":                             findNone,
		"has the paths that it changes now":                          pathsNow,
		"that renames a file has both names":                         pathsRename,
		"does not have the paths that changed on the base meanwhile": pathsMergeBase,
	}
}

func openPR(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"), Create("checks/a.md", "a\n"))
	pr, err := s.p.OpenPullRequest(s.ctx, s.Spec(made.Branch, "Watch the disk"))
	s.Must(err)
	if pr.Number < 1 || pr.URL == "" || pr.CreatedAt.IsZero() || !pr.ClosedAt.IsZero() {
		t.Fatalf("number %d, URL %q, created %v, closed %v", pr.Number, pr.URL, pr.CreatedAt, pr.ClosedAt)
	}
	s.Must(s.p.Label(s.ctx, s.Ref(), pr.Number, []string{gitprovider.LabelOurs}))
	got := s.Status(pr.Number).PullRequest
	s.Same("pull request", got, gitprovider.PullRequest{
		Number: pr.Number, Title: "Watch the disk", Body: "Why: the disk was full.", URL: pr.URL, Branch: made.Branch,
		HeadCommit: made.ID, Base: MainBranch, State: gitprovider.StateOpen, Labels: []string{gitprovider.LabelOurs},
		RepoID: s.Look().RepoID, CreatedAt: got.CreatedAt, Author: got.Author,
		Paths: []string{"checks/a.md", "checks/disk.md"},
	})
}

func openTwice(t *testing.T, h Harness) {
	s := newScene(t, h)
	first := s.Propose("claude-ops/check/disk")
	again, err := s.p.OpenPullRequest(s.ctx, s.Spec(first.Branch, "Another title"))
	s.Must(err)
	s.Same("number", again.Number, first.Number)
	s.Same("title", again.Title, first.Title)
	s.Same("list", numbers(s.List()), []int{first.Number})
}

func openAfterClose(t *testing.T, h Harness) {
	s := newScene(t, h)
	first := s.Propose("claude-ops/check/disk")
	s.Close(first.Number)
	again, err := s.p.OpenPullRequest(s.ctx, s.Spec(first.Branch, "Again"))
	s.Must(err)
	if again.Number <= first.Number {
		t.Fatalf("number %d after %d", again.Number, first.Number)
	}
	s.Same("first", s.Status(first.Number).State, gitprovider.StateClosed)
}

func openAfterBranchGone(t *testing.T, h Harness) {
	s := newScene(t, h)
	first := s.Propose("claude-ops/check/disk")
	s.DeleteBranch(first.Branch)
	again := s.Propose("claude-ops/check/disk", Create("checks/other.md", "other\n"))
	if again.Number <= first.Number {
		t.Fatalf("number %d after %d", again.Number, first.Number)
	}
	s.Same("first", s.Status(first.Number).State, gitprovider.StateClosed)
	s.Same("list", numbers(s.List()), []int{again.Number})
}

func openMissing(t *testing.T, h Harness) {
	s := newScene(t, h)
	_, err := s.p.OpenPullRequest(s.ctx, s.Spec("claude-ops/check/none", "No head"))
	s.Code(err, fault.NotFound)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	spec := s.Spec(made.Branch, "No base")
	spec.Base = "none"
	_, err = s.p.OpenPullRequest(s.ctx, spec)
	s.Code(err, fault.NotFound)
	s.Same("list", numbers(s.List()), []int{})
}

func openUnchanged(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.Propose("claude-ops/check/disk")
	s.Merge(pr.Number)
	_, err := s.p.OpenPullRequest(s.ctx, s.Spec(pr.Branch, "Merged already"))
	s.Code(err, fault.NoChange)
}

func labelOnce(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.Propose("claude-ops/check/disk")
	for range 2 {
		s.Must(s.p.Label(s.ctx, s.Ref(), pr.Number, []string{gitprovider.LabelOurs, "infra"}))
	}
	labels := s.Status(pr.Number).Labels
	slices.Sort(labels)
	s.Same("labels", labels, []string{gitprovider.LabelOurs, "infra"})
	s.Must(s.p.Label(s.ctx, s.Ref(), pr.Number, nil))
}

func labelMissing(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Code(s.p.Label(s.ctx, s.Ref(), 4711, []string{gitprovider.LabelOurs}), fault.NotFound)
}

// Find returns the newest pull request whose head is the branch; nil if there is none.
func (s *Scene) Find(branch string) *gitprovider.PullRequest {
	s.t.Helper()
	pr, err := s.p.FindByHead(s.ctx, s.Ref(), branch)
	s.Must(err)
	return pr
}

func findByHead(t *testing.T, h Harness) {
	s := newScene(t, h)
	open := s.Propose("claude-ops/check/open")
	closed := s.Propose("claude-ops/check/closed", Create("checks/c.md", "c\n"))
	s.Close(closed.Number)
	merged := s.Propose("claude-ops/check/merged", Create("checks/m.md", "m\n"))
	s.Merge(merged.Number)
	for branch, want := range map[string]struct {
		number int
		state  gitprovider.State
	}{
		open.Branch:   {open.Number, gitprovider.StateOpen},
		closed.Branch: {closed.Number, gitprovider.StateClosed},
		merged.Branch: {merged.Number, gitprovider.StateMerged},
	} {
		pr := s.Find(branch)
		if pr == nil || pr.Number != want.number || pr.State != want.state {
			t.Errorf("head %s: found %+v, want number %d, %s", branch, pr, want.number, want.state)
		}
	}
}

func findNewest(t *testing.T, h Harness) {
	s := newScene(t, h)
	first := s.Propose("claude-ops/check/disk")
	s.Close(first.Number)
	second, err := s.p.OpenPullRequest(s.ctx, s.Spec(first.Branch, "Second"))
	s.Must(err)
	s.Same("number", s.Find(first.Branch).Number, second.Number)
}

func findNone(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Propose("claude-ops/check/disk")
	if pr := s.Find("claude-ops/check/dis"); pr != nil {
		t.Fatalf("found %+v for a branch without a pull request", pr)
	}
}

func pathsNow(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.Propose("claude-ops/check/disk")
	head := s.Push(pr.Branch, File{Path: "checks/added.md", Content: "by a person\n"})
	got := s.List()
	s.Same("paths", got[0].Paths, []string{"checks/added.md", "checks/disk.md"})
	s.Same("head", got[0].HeadCommit, head)
	s.Same("paths in the snapshot", s.Look().Open[0].Paths, got[0].Paths)
}

func pathsRename(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Propose("claude-ops/check/rename", Delete("checks/disk.md"), Create("checks/storage.md", "# Disk\n\ndf -h\n"))
	s.Same("paths", s.List()[0].Paths, []string{"checks/disk.md", "checks/storage.md"})
}

func pathsMergeBase(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Propose("claude-ops/check/disk")
	s.Push(MainBranch, File{Path: "README.md", Content: "moved on\n"})
	s.Same("paths", s.List()[0].Paths, []string{"checks/disk.md"})
}

func listTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"has every open one with the label, oldest first": listMany,
		"of a label that nothing carries is empty":        listEmpty,
		"of a repository without a commit is empty":       listNoCommit,
		"leaves out what is closed, merged or unlabelled": listFilter,
	}
}

func listMany(t *testing.T, h Harness) {
	s := newScene(t, h)
	var want []int
	for i := range h.ManyPRs() {
		branch := fmt.Sprintf("claude-ops/check/n%03d", i)
		s.Push(branch, File{Path: fmt.Sprintf("checks/n%03d.md", i), Content: "n\n"})
		want = append(want, s.OpenPR(branch, "Many", gitprovider.LabelOurs))
	}
	prs := s.List()
	s.Same("numbers", numbers(prs), want)
	for i, pr := range prs {
		s.Same("paths", pr.Paths, []string{fmt.Sprintf("checks/n%03d.md", i)})
	}
	s.Same("open in the snapshot", len(s.Look().Open), len(want))
}

func listEmpty(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Propose("claude-ops/check/disk")
	prs, err := s.p.ListOpen(s.ctx, s.Ref(), "nobody-uses-this")
	s.Must(err)
	s.Same("numbers", numbers(prs), []int{})
}

func listNoCommit(t *testing.T, h Harness) {
	s := NewScene(t, h.NewRepo(t))
	s.Same("numbers", numbers(s.List()), []int{})
}

func listFilter(t *testing.T, h Harness) {
	s := newScene(t, h)
	open := s.Propose("claude-ops/check/open")
	s.Close(s.Propose("claude-ops/check/closed", Create("checks/c.md", "c\n")).Number)
	s.Merge(s.Propose("claude-ops/check/merged", Create("checks/m.md", "m\n")).Number)
	s.Push("claude-ops/fix/unlabelled", File{Path: "checks/u.md", Content: "u\n"})
	s.OpenPR("claude-ops/fix/unlabelled", "No label")
	s.Same("numbers", numbers(s.List()), []int{open.Number})
}
