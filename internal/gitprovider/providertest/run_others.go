package providertest

import (
	"slices"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// othersTests are about pull requests that are not ours: of people, and from forks.
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
func (s *scene) foreign() *gitprovider.Snapshot {
	s.t.Helper()
	snap, err := s.p.Snapshot(s.ctx, gitprovider.SnapshotQuery{
		Repo: s.Ref(), Paths: []gitprovider.Path{Path(s.t, "checks/disk.md")}, Foreign: true,
	})
	s.must(err)
	return snap
}

func othersShown(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.propose("claude-ops/check/disk")
	s.Push("feature/person", File{Path: "checks/memory.md", Content: "by a person\n"})
	number := s.OpenPR("feature/person", "A person's")
	snap := s.foreign()
	s.same("numbers", numbers(snap.Foreign), []int{number})
	s.same("paths", snap.Foreign[0].Paths, []string{"checks/memory.md"})
	s.same("unread", snap.ForeignUnread, 0)
	s.same("ours", len(snap.Open), 1)
	s.Push("feature/person", File{Path: "checks/disk.md", Content: "by a person\n"})
	s.same("paths after a push", s.foreign().Foreign[0].Paths, []string{"checks/disk.md", "checks/memory.md"})
	s.Close(number)
	s.same("after it was closed", len(s.foreign().Foreign), 0)
}

func othersNotAsked(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Push("feature/person", File{Path: "checks/disk.md", Content: "by a person\n"})
	s.OpenPR("feature/person", "A person's")
	snap := s.look("checks/disk.md")
	s.same("foreign", len(snap.Foreign)+snap.ForeignUnread, 0)
}

func othersBase(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Push("stable", File{Path: "checks/old.md", Content: "old\n"})
	s.Push("feature/person", File{Path: "checks/disk.md", Content: "by a person\n"})
	s.OpenPR("feature/person", "A person's")
	snap, err := s.p.Snapshot(s.ctx, gitprovider.SnapshotQuery{Repo: s.Ref(), Base: "stable", Foreign: true})
	s.must(err)
	s.same("foreign", len(snap.Foreign)+snap.ForeignUnread, 0)
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
	if pr := s.find(branch); pr != nil {
		t.Errorf("found %+v for our branch of the same name", pr)
	}
	s.same("list", numbers(s.list()), []int{})
	snap := s.foreign()
	s.same("ours", numbers(snap.Open), []int{})
	s.same("foreign", numbers(snap.Foreign), []int{theirs})
	pr := snap.Foreign[0]
	s.same("paths", pr.Paths, []string{"checks/disk.md"})
	if !pr.Fork || pr.Author != "eve" || pr.Branch == branch {
		t.Errorf("fork %v, author %q, branch %q", pr.Fork, pr.Author, pr.Branch)
	}
	s.same("status", s.status(theirs).Fork, true)
	mine := s.propose(branch, Create("checks/mine.md", "mine\n"))
	s.same("list with ours", numbers(s.list()), []int{mine.Number})
	s.same("found by its head", s.find(branch).Number, mine.Number)
	s.Close(theirs)
	s.same("closed", len(s.lookClosed().Closed), 0)
}

// lookClosed takes a snapshot with all that was ever closed.
func (s *scene) lookClosed() *gitprovider.Snapshot {
	s.t.Helper()
	snap, err := s.p.Snapshot(s.ctx, gitprovider.SnapshotQuery{Repo: s.Ref(), ClosedSince: when().AddDate(-10, 0, 0)})
	s.must(err)
	return snap
}

func othersMarked(t *testing.T, h Harness) {
	s := newScene(t, h)
	labelled := s.propose("claude-ops/check/disk")
	s.Push("claude-ops/fix/marked", File{Path: "checks/m.md", Content: "m\n"})
	marked := s.OpenPR("claude-ops/fix/marked", "Its label got lost")
	s.SetBody(marked, "By us?\n\n"+gitprovider.MarkOpening+"v1 x y -->\n")
	s.Push("claude-ops/fix/plain", File{Path: "checks/p.md", Content: "p\n"})
	s.OpenPR("claude-ops/fix/plain", "Neither label nor mark")
	prs := s.list()
	s.same("numbers", numbers(prs), []int{labelled.Number, marked})
	s.same("paths", prs[1].Paths, []string{"checks/m.md"})
	s.same("labels", slices.Contains(prs[1].Labels, gitprovider.LabelOurs), false)
}
