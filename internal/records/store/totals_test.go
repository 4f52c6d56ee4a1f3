package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

func TestOpenPullRequestsAreCountedByRepositoryAndAge(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	const day = 24 * time.Hour
	number := 0
	open := func(repo string) {
		t.Helper()
		number++
		id := fmt.Sprintf("n%d", number)
		p := proposal(id, "checks/"+id+".md")
		p.Repo, p.CreatedAt = repo, c.now
		reserve(t, s, p, 1<<40)
		finish(t, s, id, opened(number))
	}
	open("old")
	open("both")
	c.now = c.now.Add(25 * day)
	open("both")
	c.now = c.now.Add(8 * day)
	open("both")
	open("both")
	c.now = c.now.Add(2 * day)
	open("new")
	repo := func(name string) record.RepoName {
		return record.RepoName{Provider: "local", Owner: "demo", Name: name}
	}
	most, rest, err := s.Pulls.OpenPullCounts(t.Context(), 2)
	wantEqual(t, err, nil)
	wantEqual(t, most, []record.OpenPulls{{RepoName: repo("both"), Week: 2, Month: 1, Older: 1},
		{RepoName: repo("new"), Day: 1}})
	wantEqual(t, rest, record.OpenPulls{Older: 1})
	outcomes, gates, err := s.History.Totals(t.Context())
	wantEqual(t, err, nil)
	wantEqual(t, outcomes, []record.OutcomeTotal{{Outcome: record.OutcomeRefused, Count: 6}})
	wantEqual(t, len(gates), 1)
}
