package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// recounted is a place at which one random thing after the other is recorded, by two processes.
type recounted struct {
	*testing.T
	*rand.Rand
	place  string
	clock  *clock
	stores [2]*Store
	pulls  []record.PullKey
	n      int
}

func (r *recounted) restart(i int) {
	if s := r.stores[i]; s != nil {
		wantEqual(r.T, s.Close(), nil)
	}
	s, err := openPlace(context.Background(), r.place, Options{Now: r.clock.Now})
	wantEqual(r.T, err, nil)
	r.stores[i] = s
}

// change records something, and says what.
func (r *recounted) change() string {
	r.n++
	s, id := r.stores[r.IntN(2)], fmt.Sprintf("id-%04d", r.n)
	switch kind := r.IntN(12); kind {
	case 0, 1, 2:
		a := attempt(id)
		a.Time = r.clock.now.Add(-time.Duration(r.IntN(30*60)) * time.Minute)
		a.Code = []fault.Code{fault.ScopeDenied, fault.TierDenied, fault.DuplicatePR}[r.IntN(3)]
		recordAttempts(r.T, s, a)
		return "a refusal"
	case 3, 4:
		p, a := proposal(id), attempt(id)
		p.Digest, p.CreatedAt = fmt.Sprint("d", r.IntN(6)), r.clock.now.Add(-time.Duration(r.IntN(40*24))*time.Hour)
		a.Outcome, a.Code, a.Verdicts, a.Time = record.OutcomeDryRun, "", nil, p.CreatedAt
		wantEqual(r.T, s.Ledger.Record(r.Context(), a, &p), nil)
		return "a dry run"
	case 5, 6:
		return r.propose(s, id)
	case 7, 8, 9:
		return r.look(s)
	case 10:
		r.clock.now = r.clock.now.Add(time.Duration(r.IntN(10)) * 24 * time.Hour / 4)
		_, err := s.Retention.Prune(r.Context(), r.clock.now.AddDate(0, 0, -20),
			func([]record.Pruned) record.Attempt { return record.Attempt{Action: "prune"} })
		wantEqual(r.T, err, nil)
		return "time and retention"
	}
	if r.IntN(2) == 0 {
		r.restart(r.IntN(2))
		return "a restart"
	}
	for _, table := range []string{"proposals", "pulls"} { // as adoption by a root does
		wantEqual(r.T, s.db.exec(r.Context(), "UPDATE "+table+" SET provider = 'local:other' WHERE provider = 'local' AND "+
			map[string]string{"proposals": "id", "pulls": "proposal_id"}[table]+" LIKE $1",
			fmt.Sprintf("%%%d", r.IntN(10))), nil)
	}
	return "an adoption"
}

// propose records a proposal that is opened or fails, or is left.
func (r *recounted) propose(s *Store, id string) string {
	p, a := proposal(id), attempt(id)
	p.Digest = fmt.Sprint("d", r.IntN(6))
	if taken := reserve(r.T, s, p, 1<<40); taken != nil {
		r.Fatalf("taken by %+v", taken)
	}
	a.Code, a.Verdicts, a.Time = "", nil, r.clock.now
	switch r.IntN(4) {
	case 0:
		a.Outcome, a.Code = record.OutcomeFailed, fault.UpstreamError
		wantEqual(r.T, s.Ledger.Finish(r.Context(), id, record.Progress{State: record.StateFailed}, a), nil)
		return "a failure"
	case 1:
		return "a reservation"
	}
	a.Outcome, a.PRNumber = record.OutcomeOpened, r.n
	wantEqual(r.T, s.Ledger.Finish(r.Context(), id, record.Progress{State: record.StateOpened, PRNumber: r.n}, a), nil)
	r.pulls = append(r.pulls, record.PullKey{Provider: "local", Owner: p.Owner, Repo: p.Repo, Number: r.n})
	return "a pull request"
}

// look records that something was seen of a pull request.
func (r *recounted) look(s *Store) string {
	if len(r.pulls) == 0 {
		return "nothing"
	}
	seen, found, err := s.Pulls.FindPull(r.Context(), r.pulls[r.IntN(len(r.pulls))])
	wantEqual(r.T, err, nil)
	if !found {
		return "nothing" // it is of the other root
	}
	states := append(record.PullStates(), gitprovider.StateOpen, gitprovider.StateOpen)
	seen.State, seen.Approvals, seen.ChangesRequested = states[r.IntN(len(states))], r.IntN(2), r.IntN(2)
	seen.Checks = []gitprovider.ChecksState{"", "pending", "success", "failure"}[r.IntN(4)]
	seen.AskedAt = r.clock.now
	_, err = s.Pulls.SeePull(r.Context(), seen, nil)
	wantEqual(r.T, err, nil)
	return "a look at a pull request"
}

// lines are the rows of a query, in order.
func (r *recounted) lines(query string, args ...any) string {
	var out []string
	rows, err := readerOf(r.stores[0]).Query(query, args...)
	wantEqual(r.T, err, nil)
	defer rows.Close()
	for rows.Next() {
		var name, count string
		wantEqual(r.T, rows.Scan(&name, &count), nil)
		out = append(out, name+"="+count)
	}
	wantEqual(r.T, rows.Err(), nil)
	slices.Sort(out)
	return strings.Join(out, " ")
}

// check compares what is counted as things are recorded with a count of all.
func (r *recounted) check(after string) {
	r.Helper()
	for _, c := range []struct{ name, kept, counted string }{
		{"pull requests", "SELECT provider || ' ' || standing, count FROM pull_counts WHERE count <> 0",
			`SELECT provider || ' ' || CASE WHEN state <> 'open' THEN state
				WHEN objections > 0 AND COALESCE(revised_us, 0) <= COALESCE(asked_us, 0) THEN 'agent' WHEN checks = 'failure' THEN 'failed'
				WHEN checks = 'pending' THEN 'running' WHEN objections = 0 AND approvals > 0 THEN 'ready' ELSE 'review' END,
				COUNT(*) FROM pulls GROUP BY 1`},
		{"dry runs", "SELECT id || ' ' || provider, seq FROM dry_runs WHERE waits = 1",
			`SELECT p.id || ' ' || p.provider, a.seq FROM proposals p JOIN attempts a ON a.request_id = p.id WHERE p.state = 'dry_run' AND p.pruned_us IS NULL
				AND NOT EXISTS (SELECT 1 FROM proposals t WHERE t.digest = p.digest AND t.provider = p.provider
					AND t.state IN ('reserved', 'committed', 'unsettled', 'opened'))`},
		{"outcomes", "SELECT name, count FROM day_counts WHERE kind = 'outcome' AND day = -1",
			"SELECT outcome, COUNT(*) FROM attempts GROUP BY 1"},
		{"codes", "SELECT name, SUM(count) FROM day_counts WHERE kind = 'code' AND day >= 0 GROUP BY name",
			"SELECT code, COUNT(*) FROM attempts WHERE outcome = 'refused' GROUP BY 1"},
	} {
		if kept, counted := r.lines(c.kept), r.lines(c.counted); kept != counted {
			r.Fatalf("after %s: %s\nkept    %s\ncounted %s", after, c.name, kept, counted)
		}
	}
	since := r.clock.now.Add(-24 * time.Hour)
	counted := r.lines("SELECT code, COUNT(*) FROM attempts WHERE outcome = 'refused' AND time_us >= $1 GROUP BY 1",
		micros(since))
	for i, s := range r.stores {
		found, err := s.History.RefusalsByCode(r.Context(), since)
		wantEqual(r.T, err, nil)
		var kept []string
		for _, c := range found {
			kept = append(kept, fmt.Sprintf("%s=%d", c.Code, c.Count))
		}
		slices.Sort(kept)
		if strings.Join(kept, " ") != counted {
			r.Fatalf("after %s: process %d counts refusals %s, and there were %s", after, i, kept, counted)
		}
	}
	r.checkTabs(after)
}

// checkTabs compares the lists of the tabs with their counts, and with what is found without the lists.
func (r *recounted) checkTabs(after string) {
	r.Helper()
	s := r.stores[0]
	counts, err := s.History.TabCounts(r.Context())
	wantEqual(r.T, err, nil)
	for _, tab := range record.Tabs() {
		listed := attempts(r.T, s, record.AttemptQuery{Tab: tab, Limit: 200})
		found := attempts(r.T, s, record.AttemptQuery{Tab: tab, Limit: 200, Repo: "demo/home-cluster"})
		if ids(listed) != ids(found) {
			r.Fatalf("after %s: %s\nlisted %s\nfound  %s", after, tab, ids(listed), ids(found))
		}
		if int64(len(listed)) != counts[tab] {
			r.Fatalf("after %s: %d of %s are listed, and %d counted", after, len(listed), tab, counts[tab])
		}
	}
	if all := attempts(r.T, s, record.AttemptQuery{Changes: true, Limit: 200}); int64(len(all)) != counts[""] {
		r.Fatalf("after %s: %d are listed of all changes, and %d counted: %s", after, len(all), counts[""], ids(all))
	}
}

// The running counts equal a count of all, in whatever order the records were made.
func TestWhatIsCountedIsWhatACountOfAllFinds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := &recounted{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), place: emptyPlace(t), clock: &clock{noon()}}
			r.restart(0)
			r.restart(1)
			defer func() {
				for _, s := range r.stores {
					wantEqual(t, s.Close(), nil)
				}
			}()
			for range 80 {
				r.check(r.change())
			}
		})
	}
}
