package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const demoRepo = "demo/home-cluster"

func pull(branch string) gitprovider.PullRequest {
	return gitprovider.PullRequest{
		Title: "Watch the disk", Body: "C:\\ \x00 <b>", URL: "file:///srv/demo", Branch: branch, HeadCommit: "c0ffee",
		Base: "main", State: gitprovider.StateOpen, Labels: []string{"claude-ops", "check"},
		CreatedAt: noon(), Paths: []string{"checks/a.md"},
	}
}

func insert(t testing.TB, s *Store, repo string, pr gitprovider.PullRequest) gitprovider.PullRequest {
	t.Helper()
	return must.Get(s.LocalPulls.InsertPR(context.Background(), repo, pr))(t)
}

func closePR(pr *gitprovider.PullRequest) error {
	pr.State, pr.ClosedAt = gitprovider.StateClosed, noon().Add(time.Hour)
	return nil
}

func TestPullRequestsAreNumberedForEachRepository(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	for i, branch := range []string{"a", "b", "c"} {
		want := pull(branch)
		want.Number = i + 1
		wantEqual(t, insert(t, s, demoRepo, pull(branch)), want)
	}
	wantEqual(t, insert(t, s, "demo/other", pull("a")).Number, 1)

	wantEqual(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 3, closePR), nil)
	wantEqual(t, insert(t, s, demoRepo, pull("d")).Number, 4)
}

func TestAnOpenPullRequestOfTheSameHeadAndBaseIsReturned(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	first := insert(t, s, demoRepo, pull("a"))
	again := pull("a")
	again.Title = "Another title"
	wantEqual(t, insert(t, s, demoRepo, again), first)

	otherBase := pull("a")
	otherBase.Base = "release"
	wantEqual(t, insert(t, s, demoRepo, otherBase).Number, 2)

	wantEqual(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 1, closePR), nil)
	wantEqual(t, insert(t, s, demoRepo, again).Number, 3)

	reopen := func(pr *gitprovider.PullRequest) error { pr.State = gitprovider.StateOpen; return nil }
	wantCode(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 1, reopen), fault.Conflict)
}

func TestInsertPRAtOnceMakesOne(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	numbers := make([]int, 16)
	var wg sync.WaitGroup
	for i := range numbers {
		wg.Go(func() { numbers[i] = insert(t, s, demoRepo, pull("a")).Number })
	}
	wg.Wait()
	for _, n := range numbers {
		wantEqual(t, n, 1)
	}
}

func TestPRsAreListedByState(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	for i := range 12 { // more than 9, to tell numbers from text
		insert(t, s, demoRepo, pull(fmt.Sprint(i)))
	}
	insert(t, s, "demo/other", pull("a"))
	wantEqual(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 2, closePR), nil)
	for state, want := range map[gitprovider.State]string{
		"": "[1 2 3 4 5 6 7 8 9 10 11 12]", gitprovider.StateOpen: "[1 3 4 5 6 7 8 9 10 11 12]",
		gitprovider.StateClosed: "[2]", gitprovider.StateMerged: "[]",
	} {
		numbers := each(must.Get(s.LocalPulls.PRs(ctx, demoRepo, state))(t),
			func(pr gitprovider.PullRequest) int { return pr.Number })
		wantEqual(t, fmt.Sprint(numbers), want)
	}
}

func TestUpdatePRRecordsWhatTheCallbackLeaves(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	want := insert(t, s, demoRepo, pull("a"))
	want.Title, want.Labels, want.Paths = "New", nil, []string{"x", "y\\z"}
	want.State, want.ClosedAt = gitprovider.StateMerged, noon().Add(time.Minute)
	must.Do(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 1, func(pr *gitprovider.PullRequest) error {
		*pr = want
		pr.Number = 99
		return nil
	}))
	got, _, err := s.LocalPulls.PR(ctx, demoRepo, 1)
	wantEqual(t, err, nil)
	wantEqual(t, got, want)
}

func TestUpdatePRPassesOnTheCallbacksErrorAndRecordsNothing(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	before := insert(t, s, demoRepo, pull("a"))
	refused := errors.New("merge conflict")
	err := s.LocalPulls.UpdatePR(ctx, demoRepo, 1, func(pr *gitprovider.PullRequest) error {
		pr.Title = "changed"
		return refused
	})
	if err != refused { //nolint:errorlint // the very same value is promised
		t.Fatalf("got %v", err)
	}
	got, _, err := s.LocalPulls.PR(ctx, demoRepo, 1)
	wantEqual(t, err, nil)
	wantEqual(t, got, before)
}

func TestAPanicInTheCallbackLeavesTheStoreUsable(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	insert(t, s, demoRepo, pull("a"))
	func() {
		defer func() { _ = recover() }()
		_ = s.LocalPulls.UpdatePR(ctx, demoRepo, 1, func(*gitprovider.PullRequest) error { panic("broken") })
	}()
	wantEqual(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 1, closePR), nil)
}

func TestReviewsAreKeptInTheirOrder(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	insert(t, s, demoRepo, pull("a"))
	insert(t, s, demoRepo, pull("b"))
	want := []gitprovider.Review{
		{Author: "joe", State: gitprovider.ReviewChangesRequested, Body: "no \\ \xff", SubmittedAt: noon().Add(time.Hour)},
		{Author: "ann", State: gitprovider.ReviewPending},
		{Author: "ann", State: gitprovider.ReviewCommented, SubmittedAt: noon(), Comments: []gitprovider.LineComment{
			{Path: "checks/disk.md", Line: 3, Commit: "abc", Body: "Why \\ \x00?"},
			{Path: "checks/disk.md", Line: 7, Before: true, Commit: "abc", Body: "Keep it."},
		}},
		{Author: "joe", State: gitprovider.ReviewApproved, SubmittedAt: noon()},
	}
	for _, r := range want {
		wantEqual(t, s.LocalPulls.AddReview(ctx, demoRepo, 2, r), nil)
	}
	_, got, err := s.LocalPulls.PR(ctx, demoRepo, 2)
	wantEqual(t, err, nil)
	wantEqual(t, got, want)
	_, got, err = s.LocalPulls.PR(ctx, demoRepo, 1)
	wantEqual(t, err, nil)
	wantEqual(t, len(got), 0)
}

func TestUnknownPullRequestsAreNotFound(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	insert(t, s, "demo/other", pull("a"))
	_, _, err := s.LocalPulls.PR(ctx, demoRepo, 1)
	wantCode(t, err, fault.NotFound)
	wantCode(t, s.LocalPulls.UpdatePR(ctx, demoRepo, 1, closePR), fault.NotFound)
	wantCode(t, s.LocalPulls.AddReview(ctx, demoRepo, 1, gitprovider.Review{}), fault.NotFound)
}
