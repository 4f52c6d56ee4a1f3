package store

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
)

// A proposal that only answers has no files: it holds the pull request, and keeps what it answers.
func TestAnswersAreKeptAndHoldTheirPullRequest(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	answering := func(id string) record.Proposal {
		p := proposal(id)
		p.Revises = 7
		p.Answers = []record.ReviewAnswer{{Text: "So \\ \"x\".\n"}, {Text: "Daily.", Comment: "1.2", Path: "checks/a.md",
			Line: 3, Quote: "checks/a.md:3: How often?"}}
		return p
	}
	taken, err := s.Ledger.Reserve(ctx, answering("one"), record.Claim{})
	wantEqual(t, err, nil)
	if taken != nil {
		t.Fatalf("taken by %+v", taken)
	}
	for _, next := range []record.Proposal{answering("two"), func() record.Proposal {
		p := proposal("three", "checks/a.md")
		p.Revises = 7
		return p
	}()} {
		taken, err = s.Ledger.Reserve(ctx, next, record.Claim{})
		wantEqual(t, err, nil)
		if taken == nil || taken.ID != "one" {
			t.Errorf("%s: taken by %+v", next.ID, taken)
		}
	}
	got, err := s.History.Proposal(ctx, "one")
	wantEqual(t, err, nil)
	wantEqual(t, got.Answers, answering("one").Answers)
	wantEqual(t, s.Ledger.Finish(ctx, "one", record.Progress{State: record.StateOpened, PRNumber: 7}, attempt("one")), nil)
	taken, err = s.Ledger.Reserve(ctx, answering("four"), record.Claim{})
	wantEqual(t, err, nil)
	if taken == nil || taken.ID != "one" {
		t.Errorf("whoever has not seen the answer: taken by %+v", taken)
	}
}
