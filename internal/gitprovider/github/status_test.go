package github_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestMergeableIsAskedAgainAFewTimes(t *testing.T) {
	yes := true
	for _, row := range []struct {
		unknown int
		want    *bool
		waits   []time.Duration
	}{
		{0, &yes, nil},
		{2, &yes, []time.Duration{400 * time.Millisecond, 800 * time.Millisecond}},
		{9, nil, []time.Duration{400 * time.Millisecond, 800 * time.Millisecond, 1200 * time.Millisecond}},
	} {
		t.Run(fmt.Sprintf("unknown for %d reads", row.unknown), func(t *testing.T) {
			s := newScene(t)
			var waits []time.Duration
			s.p = setup(t, s.s.URL(), s.s.Token(), func(o *github.Options) {
				o.Sleep = func(_ context.Context, d time.Duration) { waits = append(waits, d) }
			})
			// the opening reads it too
			s.configure(func(set *fakegithub.Settings) { set.Delays.MergeableReads = 1 + row.unknown })
			pr := s.propose(branch)
			s.same("mergeable", s.status(pr.Number).Mergeable, row.want)
			s.same("waits", waits, row.waits)
		})
	}
}

func TestReviewsOfAllStatesAreReadToTheEnd(t *testing.T) {
	s, pr := proposed(t)
	states := []gitprovider.ReviewState{gitprovider.ReviewApproved, gitprovider.ReviewChangesRequested,
		gitprovider.ReviewCommented, gitprovider.ReviewDismissed}
	for i := range 120 {
		s.Review(pr.Number, fmt.Sprintf("ann%d", i), states[i%len(states)], "x")
	}
	reviews := s.status(pr.Number).Reviews
	s.same("reviews", len(reviews), 120)
	for i, review := range reviews {
		if review.State != states[i%len(states)] || review.Author != fmt.Sprintf("ann%d", i) || review.SubmittedAt.IsZero() {
			t.Fatalf("review %d is %+v", i, review)
		}
	}
}

func TestFailingChecksAreNamed(t *testing.T) {
	for name, row := range map[string]struct {
		runs     []fakegithub.CheckRun
		statuses []fakegithub.Status
		want     gitprovider.Checks
	}{
		"nothing": {want: gitprovider.Checks{State: gitprovider.ChecksNone}},
		"success": {runs: runs("success", "neutral", "skipped"), want: gitprovider.Checks{State: gitprovider.ChecksSuccess}},
		"still running": {runs: []fakegithub.CheckRun{{Name: "ci", Status: "in_progress"}},
			want: gitprovider.Checks{State: gitprovider.ChecksPending}},
		"pending status": {statuses: []fakegithub.Status{{Context: "ci", State: "pending"}},
			want: gitprovider.Checks{State: gitprovider.ChecksPending}},
		"failures of all kinds": {
			runs: runs("failure", "timed_out", "cancelled", "action_required", "startup_failure", "stale", "success"),
			statuses: []fakegithub.Status{{Context: "lint", State: "failure"}, {Context: "deploy", State: "error"},
				{Context: "docs", State: "success"}},
			want: gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{
				"action_required", "cancelled", "deploy", "failure", "lint", "stale", "startup_failure", "timed_out",
			}},
		},
		"a failure that a newer run superseded": {runs: []fakegithub.CheckRun{
			{Name: "test", Conclusion: "success", Attempt: 2, Started: at(1)}, {Name: "test", Conclusion: "failure"},
		}, want: gitprovider.Checks{State: gitprovider.ChecksSuccess}},
		"a failure that a run of now supersedes": {runs: []fakegithub.CheckRun{
			{Name: "test", Conclusion: "cancelled"}, {Name: "test", Status: "in_progress", Attempt: 2, Started: at(1)},
		}, want: gitprovider.Checks{State: gitprovider.ChecksPending}},
		"a superseded success": {runs: []fakegithub.CheckRun{
			{Name: "test", Conclusion: "success"}, {Name: "test", Conclusion: "failure", Attempt: 2, Started: at(1)},
		}, want: gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"test"}}},
		"a superseded run of another app": {runs: []fakegithub.CheckRun{
			{Name: "scan", App: "scanner", Conclusion: "failure"},
			{Name: "scan", App: "scanner", Conclusion: "success", Attempt: 2, Started: at(1)},
		}, want: gitprovider.Checks{State: gitprovider.ChecksSuccess}},
		"a job of the same name in another workflow": {runs: []fakegithub.CheckRun{
			{Name: "test", Conclusion: "failure"}, {Name: "test", Workflow: "Nightly", Conclusion: "success", Started: at(1)},
		}, want: gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"test"}}},
		"a job of the same name for another event": {runs: []fakegithub.CheckRun{
			{Name: "test", Conclusion: "failure"}, {Name: "test", Event: "push", Conclusion: "success", Started: at(1)},
		}, want: gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"test"}}},
		"a job of the same name in the same run": {runs: []fakegithub.CheckRun{
			{Name: "test", Conclusion: "failure"}, {Name: "test", Conclusion: "success", Started: at(1)},
		}, want: gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"test"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, pr := proposed(t)
			s.configure(func(set *fakegithub.Settings) {
				set.CI.CheckRuns = map[string][]fakegithub.CheckRun{pr.HeadCommit: row.runs}
				set.CI.Statuses = map[string][]fakegithub.Status{pr.HeadCommit: row.statuses}
			})
			got := s.status(pr.Number).Checks
			s.same("details", len(got.Details), len(row.want.Failing))
			got.Details = nil
			s.same("checks", got, row.want)
		})
	}
}

func TestFailingChecksAreTold(t *testing.T) {
	s, pr := proposed(t)
	s.configure(func(set *fakegithub.Settings) {
		set.CI.CheckRuns = map[string][]fakegithub.CheckRun{pr.HeadCommit: {{Name: "ci", Conclusion: "failure",
			Title: "2 errors", Summary: "in a file", Text: "the log"}}}
		set.CI.Statuses = map[string][]fakegithub.Status{pr.HeadCommit: {{Context: "lint", State: "failure",
			Description: "too long"}}}
	})
	got, err := s.p.Checks(t.Context(), s.Ref(), pr.Number, pr.HeadCommit)
	must.Do(t, err)
	s.same("failing", got.Failing, []string{"ci", "lint"})
	s.same("ci", []string{got.Details[0].Summary, got.Details[0].Log}, []string{"2 errors\nin a file", "the log"})
	s.same("lint", got.Details[1].Summary, "too long")
	if got.Details[0].URL == "" {
		t.Error("the run has no page")
	}
	got, err = s.p.Checks(t.Context(), s.Ref(), pr.Number, strings.Repeat("1", 40))
	must.Do(t, err)
	s.same("of another head", got.State, gitprovider.ChecksNone)
}

// A pull request may show an old head for hours, and with it the checks of that.
func TestChecksOfAnOldHeadAreNotThoseOfTheNewOne(t *testing.T) {
	s, pr := proposed(t)
	s.configure(func(set *fakegithub.Settings) {
		set.CI.CheckRuns = map[string][]fakegithub.CheckRun{pr.HeadCommit: {{Name: "ci", Conclusion: "failure"}}}
		set.Delays.Heads = map[int]string{pr.Number: pr.HeadCommit}
	})
	s.same("of its own head", s.status(pr.Number).Checks.Failing, []string{"ci"})
	s.Push(branch, memhost.File{Path: "checks/more.md", Content: "more\n"})
	now := s.status(pr.Number)
	s.same("head", now.HeadCommit, s.Branches()[branch])
	s.same("checks", now.Checks, gitprovider.Checks{State: gitprovider.ChecksNone})
	for head, want := range map[string]gitprovider.ChecksState{pr.HeadCommit: gitprovider.ChecksFailure,
		now.HeadCommit: gitprovider.ChecksNone} {
		got, err := s.p.Checks(t.Context(), s.Ref(), pr.Number, head)
		must.Do(t, err)
		s.same("checks of "+head, got.State, want)
	}
}

// at is some minutes after the time at which the runs of the fake start.
func at(minutes int) time.Time {
	return time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC)
}

// Without "Actions: read" an app does not see which workflow a run is of, and a red check must not hide behind
// another's.
func TestARunIsNotTakenForSupersededWhereTheWorkflowIsHidden(t *testing.T) {
	s := newAppScene(t)
	s.app(func(a *fakegithub.App) { delete(a.Permissions, "actions") })
	pr := s.propose(branch)
	s.configure(func(set *fakegithub.Settings) {
		set.CI.CheckRuns = map[string][]fakegithub.CheckRun{pr.HeadCommit: {
			{Name: "test", Conclusion: "failure"}, {Name: "test", Workflow: "Nightly", Conclusion: "success", Started: at(1)},
		}}
	})
	s.same("failing", s.status(pr.Number).Checks.Failing, []string{"test"})
}

// runs are completed runs, each named by its conclusion.
func runs(conclusions ...string) []fakegithub.CheckRun {
	var out []fakegithub.CheckRun
	for _, conclusion := range conclusions {
		out = append(out, fakegithub.CheckRun{Name: conclusion, Conclusion: conclusion})
	}
	return out
}

func TestChecksAreReadToTheEnd(t *testing.T) {
	s, pr := proposed(t)
	var statuses []fakegithub.Status
	for i := range 130 {
		statuses = append(statuses, fakegithub.Status{Context: fmt.Sprintf("ci-%03d", i), State: "failure"})
	}
	s.configure(func(set *fakegithub.Settings) {
		set.CI.Statuses = map[string][]fakegithub.Status{pr.HeadCommit: statuses}
	})
	s.same("failing", len(s.status(pr.Number).Checks.Failing), 130)
}

// Fine-grained tokens cannot be given the permission to see check runs.
func TestChecksThatTheTokenMayNotSeeCountAsNotReported(t *testing.T) {
	s, pr := proposed(t)
	s.status(pr.Number)
	s.s.Faults().Plan(holding("statusCheckRollup"), always(200, nil, `{
		"data": {"repository": {"pullRequest": {
			"number": 1, "state": "OPEN", "headRefName": "claude-ops/fix/one", "headRefOid": "`+pr.HeadCommit+`", "baseRefName": "main",
			"mergeable": "MERGEABLE", "commits": {"nodes": [{"commit": {"statusCheckRollup": null}}]}
		}}},
		"errors": [{"type": "FORBIDDEN", "message": "Resource not accessible by personal access token",
			"path": ["repository", "pullRequest", "commits", "nodes", 0, "commit", "statusCheckRollup"]}]
	}`))
	s.same("checks", s.status(pr.Number).Checks, gitprovider.Checks{State: gitprovider.ChecksNone})
}

// remarks are who said something, in the order of time, with a mark at those who may write.
func (s *scene) remarks(number int) []string {
	s.t.Helper()
	list, err := s.p.Remarks(s.t.Context(), s.Ref(), number)
	must.Do(s.t, err)
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
			must.Do(t, err)
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
	must.Do(t, err)
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
	must.Do(t, s.p.Assign(t.Context(), s.Ref(), pr.Number, []string{"copilot", "octo/ops"}, nil))
	s.Review(pr.Number, "copilot", gitprovider.ReviewCommented, "Looks good")
	details, err := s.p.Details(t.Context(), s.Ref(), pr.Number)
	must.Do(t, err)
	s.same("asked", details.Requested, []string{"copilot", "octo/ops"})
	s.same("reviewed", details.Reviewed, []string(nil))
	s.Comment(pr.Number, "copilot", "It is green")
	s.Comment(pr.Number, "ann", "I look at it")
	programs := map[string]bool{}
	for _, r := range s.status(pr.Number).Reviews {
		programs[r.Author+": "+r.Body] = r.Program
	}
	s.same("programs", programs, map[string]bool{"copilot: Looks good": true, "copilot: It is green": true,
		"ann: I look at it": false})
}
