package github_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
)

// remarks are who said something, in the order of time, with a mark at those who may write.
func (s *scene) remarks(number int) []string {
	s.t.Helper()
	list, err := s.p.Remarks(s.t.Context(), s.Ref(), number)
	must(s.t, err)
	var out []string
	for _, r := range list {
		who := r.Author + " " + string(r.State)
		if r.MayWrite {
			who += "*"
		}
		out = append(out, who)
	}
	return out
}

func TestAnOpinionStandsHoweverManyAnswersFollow(t *testing.T) {
	for _, opinion := range []gitprovider.ReviewState{gitprovider.ReviewApproved, gitprovider.ReviewChangesRequested} {
		t.Run(string(opinion), func(t *testing.T) {
			s := newScene(t)
			s.configure(func(set *fakegithub.Settings) { set.People.Collaborators = []string{"ann", "bob"} })
			pr := s.propose(branch)
			s.Review(pr.Number, "ann", opinion, "")
			for i := range 60 { // each answer on a line is a review
				s.Review(pr.Number, "bob", gitprovider.ReviewCommented, fmt.Sprint("answer ", i))
			}
			remarks := s.remarks(pr.Number)
			s.same("remarks", len(remarks), 51)
			s.same("the first", remarks[0], "ann "+string(opinion)+"*")
			states, err := s.p.ReviewStates(t.Context(), s.Ref(), []int{pr.Number})
			must(t, err)
			s.same("in a list", states, map[int]gitprovider.ReviewState{pr.Number: opinion})
		})
	}
}

func TestRightsToWriteAreAskedForAndNotGuessed(t *testing.T) {
	s := newScene(t)
	s.configure(func(set *fakegithub.Settings) {
		set.People.Roles = map[string]string{"reader": "read", "member": "read", "private": "write", "keeper": "maintain",
			"sorter": "triage"}
		set.People.Associations = map[string]string{"reader": "COLLABORATOR", "member": "MEMBER", "private": "CONTRIBUTOR",
			"keeper": "NONE", "sorter": "MEMBER", "ann": "MEMBER"}
		set.People.Collaborators, set.People.Bots = []string{"ann", "app"}, []string{"app"}
	})
	pr := s.propose(branch)
	s.Review(pr.Number, "member", gitprovider.ReviewApproved, "Fine")
	s.Review(pr.Number, "ann", gitprovider.ReviewCommented, "Hm")
	for _, who := range []string{"reader", "private", "keeper", "sorter", "octo", "app"} {
		s.Comment(pr.Number, who, "Do it")
	}
	want := []string{"member approved", "ann commented*", "reader ", "private *", "keeper *", "sorter ", "octo *", "app "}
	s.same("requests", s.cost(func() { s.same("remarks", s.remarks(pr.Number), want) }), 1+6)
	s.same("requests of a second look", s.cost(func() { s.remarks(pr.Number) }), 1)
	states, err := s.p.ReviewStates(t.Context(), s.Ref(), []int{pr.Number})
	must(t, err)
	s.same("a reader's approval", states, map[int]gitprovider.ReviewState{})
}

func TestOfManyStrangersTheLatestAreAskedAbout(t *testing.T) {
	s := newScene(t)
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	s.p = setup(t, s.s.URL(), s.s.Token(), func(o *github.Options) { o.Now = func() time.Time { return now } })
	s.configure(func(set *fakegithub.Settings) { set.People.Collaborators = []string{"early", "late"} })
	pr := s.propose(branch)
	s.Comment(pr.Number, "early", "Please")
	for i := range 12 {
		s.Comment(pr.Number, fmt.Sprint("stranger", i), "Me too")
	}
	s.Comment(pr.Number, "late", "Please")
	s.same("requests", s.cost(func() {
		remarks := s.remarks(pr.Number)
		s.same("the first and the last", []string{remarks[0], remarks[13]}, []string{"early ", "late *"})
	}), 1+10)
	s.same("the others", s.cost(func() { s.same("the first", s.remarks(pr.Number)[0], "early *") }), 1+4)
	s.configure(func(set *fakegithub.Settings) { set.People.Collaborators = nil })
	now = now.Add(time.Hour)
	s.same("when the right is gone", s.remarks(pr.Number)[13], "late ")
}

// GitHub has no user of a bot's name, or a different one.
func TestBotsAreNamedAndStandForNoPerson(t *testing.T) {
	s := newScene(t)
	s.configure(func(set *fakegithub.Settings) {
		set.People.Bots = []string{"copilot"}
		set.People.Collaborators, set.People.Teams = []string{"ann", "copilot"}, []string{"ops"}
	})
	pr := s.propose(branch)
	must(t, s.p.Assign(t.Context(), s.Ref(), pr.Number, []string{"copilot", "octo/ops"}, nil))
	s.Review(pr.Number, "copilot", gitprovider.ReviewCommented, "Looks good")
	details, err := s.p.Details(t.Context(), s.Ref(), pr.Number)
	must(t, err)
	s.same("asked", details.Requested, []string{"copilot", "octo/ops"})
	s.same("reviewed", details.Reviewed, []string(nil))
}
