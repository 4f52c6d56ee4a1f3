package providertest

import (
	"slices"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

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
	snap, err := s.p.Snapshot(s.ctx, gitprovider.SnapshotQuery{
		Repo: s.Ref(), Paths: []gitprovider.Path{Path(s.t, "checks/disk.md")}, Foreign: true,
	})
	s.Must(err)
	return snap
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
	snap, err := s.p.Snapshot(s.ctx, gitprovider.SnapshotQuery{Repo: s.Ref(), Base: "stable", Foreign: true})
	s.Must(err)
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
	snap, err := s.p.Snapshot(s.ctx, gitprovider.SnapshotQuery{Repo: s.Ref(), ClosedSince: when().AddDate(-10, 0, 0)})
	s.Must(err)
	return snap
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
