package providertest

import (
	"fmt"
	"slices"
	"strings"
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
		"of a branch without changes is not a change":                openUnchanged,
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
	const branch = "claude-ops/check/rename"
	s.Propose(branch+"-ours", Delete("checks/disk.md"), Create("checks/storage.md", "# Disk\n\ndf -h\n"))
	s.Commit(branch, Delete("checks/memory.md"), Create("checks/ram.md", "# Memory\n"))
	number := s.OpenPR(branch, "By somebody", gitprovider.LabelOurs)
	list, want := s.List(), []string{"checks/memory.md", "checks/ram.md"}
	s.Same("paths of ours", list[0].Paths, []string{"checks/disk.md", "checks/storage.md"})
	s.Same("paths", list[1].Paths, want)
	s.Same("paths in the status", s.Status(number).Paths, want)
	for _, pr := range s.Look().Open {
		if pr.Number == number {
			s.Same("paths in the snapshot", pr.Paths, want)
		}
	}
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
	status := s.Status(pr.Number)
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
	status := s.Status(pr.Number)
	s.Same("state", status.State, gitprovider.StateOpen)
	w.Number += 1000
	s.Code(s.p.Withdraw(s.ctx, s.Ref(), w), fault.NotFound)
}

func settleWithdrawClosed(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, w := s.just("claude-ops/check/disk")
	s.Close(pr.Number)
	s.Must(s.p.Withdraw(s.ctx, s.Ref(), w))
	status := s.Status(pr.Number)
	s.Same("state and body", []string{string(status.State), strings.TrimSpace(status.Body)},
		[]string{"closed", strings.TrimSpace(w.Body)})
}

func settleWithdrawMerged(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, w := s.just("claude-ops/check/disk")
	s.Merge(pr.Number)
	s.Code(s.p.Withdraw(s.ctx, s.Ref(), w), fault.Conflict)
}
