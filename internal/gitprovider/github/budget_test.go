package github_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The design allows a create_pr seven requests, whatever the number of files. All of these follow one another.
func TestCreatingAPullRequestCostsFewRequests(t *testing.T) {
	for _, files := range []int{1, 3, 30, gitprovider.MaxFilesPerPR} {
		t.Run(fmt.Sprintf("of %d files", files), func(t *testing.T) {
			s := newScene(t)
			s.OpenMany(3, "claude-ops/check")
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
	s.OpenMany(100, "claude-ops/check", gitprovider.LabelOurs)
	s.OpenMany(150, "feature")
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
	s.OpenMany(others, "feature")
	q := s.query("checks/disk.md")
	q.Foreign = true
	look := func(wantRequests, wantUnread int) {
		t.Helper()
		var snapshot *gitprovider.Snapshot
		s.same("requests", s.cost(func() {
			var err error
			snapshot, err = s.p.Snapshot(t.Context(), q)
			must.Do(t, err)
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
	s.OpenMany(5, "claude-ops/check")
	s.look()
	s.Push("claude-ops/check/n003", memhost.File{Path: "checks/more.md", Content: "more\n"})
	s.Close(5)
	var snapshot *gitprovider.Snapshot
	s.same("requests", s.cost(func() { snapshot = s.look() }), 1)
	s.same("paths", snapshot.Open[3].Paths, []string{"checks/more.md", "checks/n003.md"})
	s.same("closed", snapshot.Closed[0].Paths, []string{"checks/n004.md"})
}

// listScene is a scene whose host's clock a test moves: a minute passes before each step.
type listScene struct {
	*scene
	now  time.Time
	late time.Duration // how far the host's clock is behind
}

func newListScene(t *testing.T) *listScene {
	t.Helper()
	s := &listScene{scene: newScene(t), now: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}
	s.p = setup(t, s.s.URL(), s.s.Token(), func(o *github.Options) { o.Now = func() time.Time { return s.now } })
	s.s.Host().SetClock(func() time.Time { return s.now.Add(-s.late) })
	return s
}

func (s *listScene) tick() { s.now = s.now.Add(time.Minute) }

// open opens pull requests, two of five of ours.
func (s *listScene) open(all int) {
	for i := range all {
		s.tick()
		branch, labels := fmt.Sprintf("topic-%04d", i), []string{}
		if i%5 < 2 {
			labels = append(labels, gitprovider.LabelOurs)
		}
		s.Push(branch, memhost.File{Path: fmt.Sprintf("checks/n%04d.md", i), Content: "n\n"})
		s.OpenPR(branch, fmt.Sprintf("n%04d", i), labels...)
	}
}

// edit changes a pull request as somebody at GitHub would.
func (s *listScene) edit(number int, change func(pr *memhost.PR)) {
	s.t.Helper()
	must.Do(s.t, s.s.Host().Act(s.Ref(), func(r *memhost.Repo) error { change(r.PR(number)); return nil }))
	s.configure(func(*fakegithub.Settings) {}) // has the change dated
}

// exact demands the list that a process has that reads it for the first time, for so many requests.
func (s *listScene) exact(when string, cost int) {
	s.t.Helper()
	var got []gitprovider.PullRequest
	s.same("requests "+when, s.cost(func() { got = s.list() }), cost)
	fresh, err := setup(s.t, s.s.URL(), s.s.Token()).ListOpen(s.t.Context(), s.Ref(), gitprovider.LabelOurs)
	must.Do(s.t, err)
	s.same("list "+when, got, fresh)
}

func TestAListThatWasReadBeforeCostsOneRequestWhateverItsLength(t *testing.T) {
	for _, all := range []int{250, 600} {
		s := newListScene(t)
		s.open(all)
		s.list()
		s.exact(fmt.Sprintf("of the second call over %d", all), 1)
	}
}

func TestAListIsKeptExactByItsChanges(t *testing.T) {
	s := newListScene(t)
	s.open(300) // 120 of ours: the numbers 1, 2, 6, 7, 11, 12 and so on
	s.list()
	for name, step := range map[string]struct {
		do   func()
		cost int
	}{
		"after nothing":        {func() {}, 1},
		"after a push":         {func() { s.Push("topic-0000", memhost.File{Path: "checks/more.md", Content: "m\n"}) }, 2},
		"after a closing":      {func() { s.Close(6) }, 1},
		"after a merge":        {func() { s.Merge(7) }, 1},
		"after a label":        {func() { s.edit(3, func(pr *memhost.PR) { pr.AddLabels(gitprovider.LabelOurs) }) }, 2},
		"after a label's loss": {func() { s.edit(11, func(pr *memhost.PR) { pr.Labels = nil }) }, 1},
		"after a new title":    {func() { s.edit(12, func(pr *memhost.PR) { pr.Title = "Other" }) }, 1},
		"after a new one": {func() {
			s.Push("topic-new", memhost.File{Path: "checks/new.md", Content: "n\n"})
			s.OpenPR("topic-new", "New", gitprovider.LabelOurs)
		}, 2},
	} {
		s.tick()
		step.do()
		s.exact(name, step.cost)
	}
}

func TestAListIsReadWholeWhenItsChangesDoNotTellAll(t *testing.T) {
	s := newListScene(t)
	s.open(300)
	s.list()
	for i := range 60 {
		s.tick()
		s.edit(200-i, func(pr *memhost.PR) { pr.Body = "Changed." })
	}
	s.exact("after more changes than are looked through", 1+2)
	s.exact("and then", 1)

	s.tick()
	s.late = 24 * time.Hour // GitHub does not date what is done now as it should
	s.edit(1, func(pr *memhost.PR) { pr.Labels = nil })
	s.late = 0
	s.exact("after a change that has no date", 1+2)
	s.exact("and after that", 1)

	s.now = s.now.Add(2 * time.Hour)
	s.exact("after some hours, whole", 2)
}
