package github_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

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
	must(s.t, s.s.Host().Act(s.Ref(), func(r *memhost.Repo) error { change(r.PR(number)); return nil }))
	s.configure(func(*fakegithub.Settings) {}) // has the change dated
}

// exact demands the list that a process has that reads it for the first time, for so many requests.
func (s *listScene) exact(when string, cost int) {
	s.t.Helper()
	var got []gitprovider.PullRequest
	s.same("requests "+when, s.cost(func() { got = s.list() }), cost)
	fresh, err := setup(s.t, s.s.URL(), s.s.Token()).ListOpen(s.t.Context(), s.Ref(), gitprovider.LabelOurs)
	must(s.t, err)
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
