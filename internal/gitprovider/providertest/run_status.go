package providertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func statusTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"of an open one tells that it can be merged": statusOpen,
		"of a conflicting one tells that it cannot":  statusConflict,
		"of a merged one":                                statusMerged,
		"of a closed one":                                statusClosed,
		"of one whose branch is gone is closed":          statusBranchGone,
		"has the reviews, oldest first":                  statusReviews,
		"has no checks when nothing was reported":        statusChecks,
		"of a number that does not exist is not found":   statusMissing,
		"of a merged one whose branch is gone as well":   statusMergedAndGone,
		"of one that was pushed to shows the new commit": statusPushed,
	}
}

func statusOpen(t *testing.T, h Harness) {
	s := newScene(t, h)
	status := s.settled(s.propose("claude-ops/check/disk").Number)
	s.same("state", status.State, gitprovider.StateOpen)
	s.same("mergeable", status.Mergeable, ptr(true))
	s.Push(MainBranch, File{Path: "README.md", Content: "moved on\n"})
	s.same("mergeable after the base moved on", s.settled(status.Number).Mergeable, ptr(true))
}

func ptr[T any](v T) *T { return &v }

// settled asks until the host has computed whether the pull request can be merged, at most for some seconds.
func (s *scene) settled(number int) gitprovider.Status {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		status := s.status(number)
		if status.Mergeable != nil || time.Now().After(deadline) {
			return status
		}
	}
}

func statusConflict(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.propose("claude-ops/check/disk")
	s.Push(MainBranch, File{Path: "checks/disk.md", Content: "# Disk\n\nsomething else\n"})
	status := s.settled(pr.Number)
	s.same("state", status.State, gitprovider.StateOpen)
	s.same("mergeable", status.Mergeable, ptr(false))
}

func statusMerged(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.propose("claude-ops/check/disk")
	s.Merge(pr.Number)
	s.ended(pr.Number, gitprovider.StateMerged)
}

// ended demands the state of a pull request that is not open.
func (s *scene) ended(number int, want gitprovider.State) {
	s.t.Helper()
	status := s.status(number)
	s.same("state", status.State, want)
	if status.ClosedAt.IsZero() || status.Mergeable != nil {
		s.t.Fatalf("closed at %v, mergeable %v; want a time and nil", status.ClosedAt, status.Mergeable)
	}
	s.same("the same later", s.status(number).ClosedAt, status.ClosedAt)
	s.same("list", numbers(s.list()), []int{})
}

func statusClosed(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.propose("claude-ops/check/disk")
	s.Close(pr.Number)
	s.ended(pr.Number, gitprovider.StateClosed)
}

func statusBranchGone(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.propose("claude-ops/check/disk")
	s.DeleteBranch(pr.Branch)
	s.ended(pr.Number, gitprovider.StateClosed)
	s.same("paths", s.status(pr.Number).Paths, []string{"checks/disk.md"})
}

func statusMergedAndGone(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.propose("claude-ops/check/disk")
	s.Merge(pr.Number)
	s.DeleteBranch(pr.Branch)
	s.ended(pr.Number, gitprovider.StateMerged)
}

func statusPushed(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.propose("claude-ops/check/disk")
	head := s.Push(pr.Branch, File{Path: "checks/more.md", Content: "more\n"})
	s.same("head", s.status(pr.Number).HeadCommit, head)
	s.Merge(pr.Number)
	s.ended(pr.Number, gitprovider.StateMerged)
}

func statusReviews(t *testing.T, h Harness) {
	s := newScene(t, h)
	pr := s.propose("claude-ops/check/disk")
	s.same("reviews of a new one", len(s.status(pr.Number).Reviews), 0)
	want := []gitprovider.Review{
		{Author: "ann", State: gitprovider.ReviewCommented, Body: "Why?\nSecond line."},
		{Author: "ann", State: gitprovider.ReviewChangesRequested, Body: "Not so."},
		{Author: "bob", State: gitprovider.ReviewApproved},
	}
	for _, r := range want {
		s.Review(pr.Number, r.Author, r.State, r.Body)
	}
	got := s.status(pr.Number).Reviews
	for i := range got {
		if got[i].SubmittedAt.IsZero() {
			t.Errorf("review %d has no time", i)
		}
		got[i].SubmittedAt = time.Time{}
	}
	s.same("reviews", got, want)
}

func statusChecks(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.same("checks", s.status(s.propose("claude-ops/check/disk").Number).Checks, gitprovider.Checks{State: gitprovider.ChecksNone})
}

func statusMissing(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.propose("claude-ops/check/disk")
	for _, number := range []int{0, -1, 4711} {
		_, err := s.p.Status(s.ctx, s.Ref(), number)
		s.code(err, fault.NotFound)
	}
}

func everyMethodTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"knows its name": nameTest,
		"says not found for a missing repository":         missingRepo,
		"says timeout for a context that ended":           endedContext,
		"says timeout for a deadline that passed":         passedDeadline,
		"keeps the cause of a context's end for the logs": contextCause,
	}
}

// methods calls every method of the port that takes a context.
func (s *scene) methods(ctx context.Context, ref gitprovider.RepoRef) map[string]error {
	s.t.Helper()
	req := s.request("claude-ops/fix/every-method", Update("checks/disk.md", "new\n"))
	req.Snapshot.Repo = ref
	spec := s.spec("claude-ops/fix/every-method", "Every method")
	spec.Repo = ref
	errs := map[string]error{}
	_, errs["Snapshot"] = s.p.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: ref})
	_, errs["Commit"] = s.p.Commit(ctx, req)
	_, errs["OpenPullRequest"] = s.p.OpenPullRequest(ctx, spec)
	errs["Label"] = s.p.Label(ctx, ref, 1, []string{"x"})
	_, errs["FindByHead"] = s.p.FindByHead(ctx, ref, spec.Head)
	_, errs["BranchTip"] = s.p.BranchTip(ctx, ref, spec.Head)
	errs["DeleteBranch"] = s.p.DeleteBranch(ctx, ref, spec.Head, req.Snapshot.BaseCommit)
	_, errs["ListOpen"] = s.p.ListOpen(ctx, ref, gitprovider.LabelOurs)
	_, errs["Status"] = s.p.Status(ctx, ref, 1)
	return errs
}

func nameTest(t *testing.T, h Harness) {
	s := newScene(t, h)
	if s.p.Name() == "" {
		t.Fatal("the provider has no name")
	}
}

func (s *scene) everyMethod(ctx context.Context, ref gitprovider.RepoRef, want fault.Code) {
	s.t.Helper()
	before := s.Branches()
	for method, err := range s.methods(ctx, ref) {
		if got := fault.CodeOf(err); got != want {
			s.t.Errorf("%s: got code %q (%v), want %s", method, got, err, want)
		}
	}
	s.same("branches", s.Branches(), before)
}

func missingRepo(t *testing.T, h Harness) {
	s := newScene(t, h)
	for _, ref := range []gitprovider.RepoRef{
		{Owner: s.Ref().Owner, Name: "no-such-repository"}, {Owner: "no-such-owner", Name: s.Ref().Name},
	} {
		s.everyMethod(s.ctx, ref, fault.NotFound)
	}
}

func endedContext(t *testing.T, h Harness) {
	s := newScene(t, h)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	s.everyMethod(ctx, s.Ref(), fault.Timeout)
}

func passedDeadline(t *testing.T, h Harness) {
	s := newScene(t, h)
	ctx, cancel := context.WithDeadline(s.ctx, time.Unix(0, 0))
	defer cancel()
	s.everyMethod(ctx, s.Ref(), fault.Timeout)
}

func contextCause(t *testing.T, h Harness) {
	s := newScene(t, h)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	for method, err := range s.methods(ctx, s.Ref()) {
		if e := fault.From(err); e == nil || e.Cause == nil {
			t.Errorf("%s: %v has no cause", method, err)
		}
	}
}

func raceTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"of creators of one branch has one winner":           raceBranch,
		"of openers of one pull request ends with one":       raceOpen,
		"of creators of different branches has no loser":     raceDifferent,
		"of deleting one branch leaves nobody with an error": raceDelete,
	}
}

// together runs n calls at the same time.
func together(n int, do func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

const racers = 6

func raceBranch(t *testing.T, h Harness) {
	s := newScene(t, h)
	req := s.request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	made := make([]gitprovider.Commit, racers)
	errs := together(racers, func(i int) (err error) {
		mine := req
		mine.Message += string(rune('a' + i))
		made[i], err = s.p.Commit(s.ctx, mine)
		return err
	})
	winners := 0
	for i, err := range errs {
		if err != nil {
			s.code(err, fault.Conflict)
			continue
		}
		winners++
		s.same("tip", s.tip(req.Branch), made[i].ID)
	}
	s.same("winners", winners, 1)
}

func raceOpen(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	got := make([]int, racers)
	for _, err := range together(racers, func(i int) error {
		pr, err := s.p.OpenPullRequest(s.ctx, s.spec(made.Branch, "Race"))
		got[i] = pr.Number
		return err
	}) {
		s.must(err)
	}
	for _, number := range got {
		s.same("number", number, got[0])
	}
	s.same("found", s.find(made.Branch).Number, got[0])
}

func raceDifferent(t *testing.T, h Harness) {
	s := newScene(t, h)
	req := s.request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	for _, err := range together(racers, func(i int) error {
		mine := req
		mine.Branch += string(rune('a' + i))
		_, err := s.p.Commit(s.ctx, mine)
		return err
	}) {
		s.must(err)
	}
	s.same("branches", len(s.Branches()), racers+1)
}

func raceDelete(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	for _, err := range together(racers, func(int) error {
		return s.p.DeleteBranch(s.ctx, s.Ref(), made.Branch, made.ID)
	}) {
		s.must(err)
	}
	s.same("tip", s.tip(made.Branch), "")
}
