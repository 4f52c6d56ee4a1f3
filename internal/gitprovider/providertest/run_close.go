package providertest

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func closeTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"closes what is at the commit, once":          closeOpen,
		"closes nothing that has moved":               closeMoved,
		"leaves one that a person has closed":         closeClosed,
		"leaves one that was merged":                  closeMerged,
		"closes nothing that is not ours":             closeForeign,
		"knows no number that does not exist":         closeMissing,
		"frees the files, and may be proposed anew":   closeFrees,
		"of two at the same time says the same twice": closeTogether,
	}
}

// closing opens a pull request, and says how it is closed.
func (s *Scene) closing(branch string) (gitprovider.PullRequest, gitprovider.Closing) {
	s.t.Helper()
	pr := s.Propose(branch, Update("checks/disk.md", "new\n"))
	return pr, gitprovider.Closing{Number: pr.Number, Branch: pr.Branch, Head: pr.HeadCommit, Body: "Nobody acted.\n"}
}

// shut closes, and holds the answer and what there is then against what is wanted.
func (s *Scene) shut(c gitprovider.Closing, state gitprovider.State, body string) {
	s.t.Helper()
	got, err := s.p.Close(s.ctx, s.Ref(), c)
	s.Must(err)
	s.Same("state that was returned", got, state)
	s.holds(c.Number, state, body)
}

func (s *Scene) holds(number int, state gitprovider.State, body string) {
	s.t.Helper()
	status := s.Status(number)
	s.Same("state and body", []string{string(status.State), strings.TrimSpace(status.Body)},
		[]string{string(state), strings.TrimSpace(body)})
}

func closeOpen(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, c := s.closing("claude-ops/check/disk")
	s.shut(c, gitprovider.StateClosed, c.Body)
	s.Same("branch", s.Tip(pr.Branch), pr.HeadCommit)
	closed := s.Status(pr.Number).ClosedAt
	again := c
	again.Body = "Another text.\n"
	s.shut(again, gitprovider.StateClosed, c.Body)
	s.Same("when it was closed", s.Status(pr.Number).ClosedAt, closed)
}

func closeMoved(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, c := s.closing("claude-ops/check/disk")
	for what, other := range map[string]gitprovider.Closing{
		"another head":   {Number: c.Number, Branch: c.Branch, Head: s.Branches()[MainBranch], Body: c.Body},
		"no head":        {Number: c.Number, Branch: c.Branch, Body: c.Body},
		"another branch": {Number: c.Number, Branch: "claude-ops/check/other", Head: c.Head, Body: c.Body},
	} {
		if _, err := s.p.Close(s.ctx, s.Ref(), other); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.Push(pr.Branch, File{Path: "checks/more.md", Content: "a person's\n"})
	_, err := s.p.Close(s.ctx, s.Ref(), c)
	s.Code(err, fault.Conflict)
	s.holds(pr.Number, gitprovider.StateOpen, pr.Body)
}

func closeClosed(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, c := s.closing("claude-ops/check/disk")
	s.Close(pr.Number)
	s.shut(c, gitprovider.StateClosed, pr.Body)
}

func closeMerged(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, c := s.closing("claude-ops/check/disk")
	s.Merge(pr.Number)
	s.shut(c, gitprovider.StateMerged, pr.Body)
}

func closeForeign(t *testing.T, h Harness) {
	s := newScene(t, h)
	head := s.Push("feature/x", File{Path: "checks/x.md", Content: "x\n"})
	number := s.OpenPR("feature/x", "A person's")
	before := s.Status(number)
	_, err := s.p.Close(s.ctx, s.Ref(), gitprovider.Closing{Number: number, Branch: "feature/x", Head: head, Body: "b\n"})
	s.Code(err, fault.InvalidArgument)
	s.holds(number, gitprovider.StateOpen, before.Body)
	world, can := s.World.(Public)
	if !can {
		return
	}
	number = world.OpenFromFork("claude-ops/check/disk", "From a fork", nil, File{Path: "checks/e.md", Content: "e\n"})
	before = s.Status(number)
	_, err = s.p.Close(s.ctx, s.Ref(), gitprovider.Closing{Number: number, Branch: "claude-ops/check/disk",
		Head: before.HeadCommit, Body: "b\n"})
	s.Code(err, fault.Conflict)
	s.holds(number, gitprovider.StateOpen, before.Body)
}

func closeMissing(t *testing.T, h Harness) {
	s := newScene(t, h)
	_, c := s.closing("claude-ops/check/disk")
	c.Number += 1000
	_, err := s.p.Close(s.ctx, s.Ref(), c)
	s.Code(err, fault.NotFound)
}

func closeFrees(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, c := s.closing("claude-ops/check/disk")
	s.shut(c, gitprovider.StateClosed, c.Body)
	s.Same("open ones", numbers(s.Look().Open), []int{})
	next := s.Propose("claude-ops/check/disk-2", Update("checks/disk.md", "newer\n"))
	s.Same("open ones", numbers(s.Look().Open), []int{next.Number})
	s.Same("the first", s.Status(pr.Number).State, gitprovider.StateClosed)
}

func closeTogether(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr, c := s.closing("claude-ops/check/disk")
	states := make(chan gitprovider.State)
	for range 2 {
		go func() {
			state, err := s.p.Close(s.ctx, s.Ref(), c)
			if err != nil {
				t.Error(err)
			}
			states <- state
		}()
	}
	s.Same("states", []gitprovider.State{<-states, <-states},
		[]gitprovider.State{gitprovider.StateClosed, gitprovider.StateClosed})
	s.holds(pr.Number, gitprovider.StateClosed, c.Body)
}
