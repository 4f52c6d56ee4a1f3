package github_test

import (
	"fmt"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// The design allows a create_pr seven requests, whatever the number of files. All of these follow one another.
func TestCreatingAPullRequestCostsFewRequests(t *testing.T) {
	for _, files := range []int{1, 3, 30, gitprovider.MaxFilesPerPR} {
		t.Run(fmt.Sprintf("of %d files", files), func(t *testing.T) {
			s := newScene(t)
			s.many(3)
			s.propose("claude-ops/fix/before")
			var changes []gitprovider.FileChange
			for i := range files {
				changes = append(changes, providertest.Create(fmt.Sprintf("checks/f%d.md", i), "f\n"))
			}
			cost := s.cost(func() { s.propose("claude-ops/check/many-files", changes...) })
			s.same("requests", s.asked(cost), []string{
				"POST /graphql", "createRef", "createCommitOnBranch", "POST /pulls", "POST /issues/5/labels",
			})
		})
	}
}

func TestAnExecutableFileCostsOneRequestMore(t *testing.T) {
	s := newScene(t)
	cost := s.cost(func() { s.propose("claude-ops/fix/exec", providertest.Update("playbooks/restart.md", "new\n")) })
	s.same("requests", s.asked(cost), []string{
		"POST /graphql", "POST /git/trees", "POST /git/commits", "createRef", "POST /pulls", "POST /issues/1/labels",
	})
}

func TestEachMethodHasItsCost(t *testing.T) {
	s := newScene(t)
	ctx := t.Context()
	s.configure(func(set *fakegithub.Settings) { set.Delays.MergeableReads = 2 }) // the opening reads it too
	pr := s.propose("claude-ops/fix/one")
	request := s.request("claude-ops/fix/two")
	var made gitprovider.Commit
	for _, row := range []struct {
		method string
		want   int
		call   func() error
	}{
		{"Snapshot", 1, func() error { s.look("checks/disk.md"); return nil }},
		{"Commit", 2, func() (err error) { made, err = s.p.Commit(ctx, request); return err }},
		{"OpenPullRequest", 1, func() error { _, err := s.p.OpenPullRequest(ctx, s.spec("claude-ops/fix/two")); return err }},
		{"OpenPullRequest again", 2,
			func() error { _, err := s.p.OpenPullRequest(ctx, s.spec("claude-ops/fix/two")); return err }},
		{"Label", 1, func() error { return s.p.Label(ctx, s.Ref(), pr.Number, []string{"automated"}) }},
		{"FindByHead", 1, func() error { _, err := s.p.FindByHead(ctx, s.Ref(), pr.Branch); return err }},
		{"BranchTip", 1, func() error { _, err := s.p.BranchTip(ctx, s.Ref(), pr.Branch); return err }},
		{"ListOpen", 1, func() error { s.list(); return nil }},
		{"Details", 1, func() error { _, err := s.p.Details(ctx, s.Ref(), pr.Number); return err }},
		{"Remarks", 1, func() error { _, err := s.p.Remarks(ctx, s.Ref(), pr.Number); return err }},
		{"Status, with one more look at mergeable", 2, func() error { s.status(pr.Number); return nil }},
		{"Status again", 1, func() error { s.status(pr.Number); return nil }},
		{"SetText", 1, func() error { _, err := s.p.SetText(ctx, s.Ref(), pr.Number, "", "Another body."); return err }},
		{"Comment", 1, func() error { return s.p.Comment(ctx, s.Ref(), pr.Number, "Hello.") }},
		{"DeleteBranch", 2, func() error { return s.p.DeleteBranch(ctx, s.Ref(), made.Branch, made.ID) }},
	} {
		var err error
		if got := s.cost(func() { err = row.call() }); got != row.want || err != nil {
			t.Errorf("%s: %d requests (%v), error %v; want %d", row.method, got, s.asked(got), err, row.want)
		}
	}
}

func TestListingManyIsCompleteAndCheaperTheSecondTime(t *testing.T) {
	s := newScene(t)
	s.many(100, gitprovider.LabelOurs)
	for i := range 150 {
		branch := fmt.Sprintf("feature/n%03d", i)
		s.Push(branch, memhost.File{Path: fmt.Sprintf("src/n%03d", i), Content: "n\n"})
		s.OpenPR(branch, "Somebody else's")
	}
	size := func() (total int) {
		for _, r := range s.s.Faults().Requests() {
			total += len(r.Body)
		}
		return total
	}
	var first, second []gitprovider.PullRequest
	s.same("requests", s.cost(func() { first = s.list() }), 1)
	sent := size()
	s.same("requests of the second", s.cost(func() { second = s.list() }), 1)
	s.same("list", second, first)
	s.same("length", len(first), 100)
	if size()-sent >= sent {
		t.Errorf("the second query has %d bytes, the first %d: it asks for the files again", size()-sent, sent)
	}
	s.Push("claude-ops/check/n007", memhost.File{Path: "checks/more.md", Content: "more\n"})
	s.same("requests after a push", s.cost(func() { second = s.list() }), 2)
	s.same("paths after a push", second[7].Paths, []string{"checks/more.md", "checks/n007.md"})
	var snapshot *gitprovider.Snapshot
	s.same("requests of a snapshot over 250", s.cost(func() { snapshot = s.look() }), 3)
	s.same("ours in the snapshot", len(snapshot.Open), 100)
}

func TestPullRequestsOfOthersCostAtMostTheOneRequestThatReadsOurs(t *testing.T) {
	s := newScene(t)
	s.look() // whatever is opened from here on has to be asked for
	const others = 3 * gitprovider.MaxForeign
	for i := range others {
		branch := fmt.Sprintf("feature/n%03d", i)
		s.Push(branch, memhost.File{Path: fmt.Sprintf("src/n%03d", i), Content: "n\n"})
		s.OpenPR(branch, "Somebody else's")
	}
	q := s.query("checks/disk.md")
	q.Foreign = true
	look := func(wantRequests, wantUnread int) {
		t.Helper()
		var snapshot *gitprovider.Snapshot
		s.same("requests", s.cost(func() {
			var err error
			snapshot, err = s.p.Snapshot(t.Context(), q)
			must(t, err)
		}), wantRequests)
		s.same("not looked at", snapshot.ForeignUnread, wantUnread)
		s.same("looked at", len(snapshot.Foreign), others-wantUnread)
	}
	look(2, others-2*gitprovider.MaxForeign) // the last updated come with the list
	look(2, 0)
	look(1, 0)
}

func TestASnapshotSeesMovedHeadsInOneRequest(t *testing.T) {
	s := newScene(t)
	s.many(5)
	s.look()
	s.Push("claude-ops/check/n003", memhost.File{Path: "checks/more.md", Content: "more\n"})
	s.Close(5)
	var snapshot *gitprovider.Snapshot
	s.same("requests", s.cost(func() { snapshot = s.look() }), 1)
	s.same("paths", snapshot.Open[3].Paths, []string{"checks/more.md", "checks/n003.md"})
	s.same("closed", snapshot.Closed[0].Paths, []string{"checks/n004.md"})
}
