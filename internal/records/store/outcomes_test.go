package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// ending is a place at which changes are wanted by several agents, in several repositories, and end in all ways.
type ending struct {
	*recounted
	costs map[string]float64 // by session
}

// vary gives a proposal and an attempt one of several callers, tiers, repositories and sessions.
func (e *ending) vary(p *record.Proposal, a *record.Attempt) {
	caller := []string{"agent (claude-code/2.1)", "nightly", `odd \ "name"`}[e.IntN(3)]
	tier, repo := gitprovider.Tier(1+e.IntN(3)), []string{"home-cluster", "Mail"}[e.IntN(2)]
	session := fmt.Sprintf("session-%d", e.IntN(6))
	if e.costs[session] == 0 {
		session = ""
	}
	p.Caller, p.Tier, p.Repo, p.Session = caller, tier, repo, session
	a.Caller, a.Tier, a.Repo, a.Session = caller, tier, repo, session
}

// step records something, and says what.
func (e *ending) step() string {
	e.n++
	s, id := e.stores[e.IntN(2)], fmt.Sprintf("id-%04d", e.n)
	e.clock.now = e.clock.now.Add(time.Duration(e.IntN(12)) * time.Hour)
	p, a := proposal(id), attempt(id)
	e.vary(&p, &a)
	a.Time = e.clock.now
	switch e.IntN(8) {
	case 0, 1:
		a.Code = []fault.Code{fault.ScopeDenied, fault.TierDenied, fault.DuplicatePR}[e.IntN(3)]
		recordAttempts(e.T, s, a)
		return "a refusal"
	case 2, 3:
		wantEqual(e.T, reserve(e.T, s, p, 1<<40), (*record.Proposal)(nil))
		a.Outcome, a.Code, a.Verdicts, a.PRNumber = record.OutcomeOpened, "", nil, e.n
		wantEqual(e.T, s.Ledger.Finish(e.Context(), id, record.Progress{State: record.StateOpened, PRNumber: e.n}, a), nil)
		e.pulls = append(e.pulls, record.PullKey{Provider: "local", Owner: p.Owner, Repo: p.Repo, Number: e.n})
		return "a pull request"
	case 4:
		e.spend(s, fmt.Sprintf("session-%d", e.IntN(6)))
		return "a session"
	case 5:
		wantEqual(e.T, s.db.exec(e.Context(), "UPDATE pulls SET revised_us = $1 WHERE number = $2", micros(e.clock.now),
			e.IntN(e.n)), nil) // as recordPull does
		return "a revision"
	}
	return e.see(s)
}

// spend begins a session, or lets it cost more.
func (e *ending) spend(s *Store, id string) {
	r := sessions.Record{ID: id, StartedAt: noon().AddDate(0, 0, e.IntN(9)), Ending: sessions.Ending{State: "failed"}}
	r.Tier = gitprovider.Tier(1 + len(e.costs)%3)
	if e.costs[id] == 0 {
		r.CostUSD = float64(1+e.IntN(100)) / 8
		wantEqual(e.T, s.AgentSessions.BeginSession(e.Context(), r), nil)
		e.costs[id] = r.CostUSD
	}
}

// see records what was seen of a pull request.
func (e *ending) see(s *Store) string {
	if len(e.pulls) == 0 {
		return "nothing"
	}
	seen, found, err := s.Pulls.FindPull(e.Context(), e.pulls[e.IntN(len(e.pulls))])
	wantEqual(e.T, err, nil)
	if !found {
		return "nothing" // it is of the other root
	}
	states := append(record.PullStates(), gitprovider.StateOpen, gitprovider.StateMerged, gitprovider.StateMerged)
	if seen.State = states[e.IntN(len(states))]; !seen.Open() {
		seen.EndedAt = e.clock.now.Add(-time.Duration(e.IntN(600)) * time.Minute)
	}
	if e.IntN(3) == 0 {
		seen.ReviewedAt = e.clock.now.Add(-time.Duration(e.IntN(3000)) * time.Minute)
	}
	must.Get(s.Pulls.SeePull(e.Context(), seen, nil))(e.T)
	if e.IntN(5) == 0 { // as adoption by a root does
		wantEqual(e.T, s.db.exec(e.Context(), "UPDATE pulls SET provider = 'local:other' WHERE number = $1", seen.Number), nil)
	}
	return "a look"
}

// wanted is one change as the records have it, for the naive count.
type wanted struct {
	caller, repo, session, state, code string
	tier                               int
	at                                 time.Time
	ended, revised, reviewed           time.Time
}

func (w wanted) group(by record.OutcomesBy) string {
	return map[record.OutcomesBy]string{record.ByAgent: w.caller, record.ByTier: fmt.Sprint(w.tier),
		record.ByRepository: w.repo, record.BySession: w.session}[by]
}

// all reads every change one by one.
func (e *ending) all() (out []wanted) {
	rows, err := readerOf(e.stores[0]).Query(`SELECT p.caller, LOWER(p.owner || '/' || p.repo), p.session, r.state, '',
			p.tier, p.opened_us, r.ended_us, r.revised_us, r.reviewed_us
		FROM pulls r JOIN proposals p ON p.id = r.proposal_id WHERE r.provider = 'local'
		UNION ALL SELECT a.caller, a.repo, a.session, 'refused', a.code, u.tier, a.time_us, NULL, NULL, NULL
		FROM attempts a JOIN audit u ON u.seq = a.seq WHERE a.outcome = 'refused'`)
	wantEqual(e.T, err, nil)
	defer rows.Close()
	for rows.Next() {
		var w wanted
		wantEqual(e.T, rows.Scan((*textColumn)(&w.caller), &w.repo, &w.session, &w.state, &w.code, &w.tier,
			timeColumn(&w.at), timeColumn(&w.ended), timeColumn(&w.revised), timeColumn(&w.reviewed)), nil)
		out = append(out, w)
	}
	wantEqual(e.T, rows.Err(), nil)
	return out
}

// minutes is the naive rule of how long something took.
func minutes(from, to time.Time) int64 {
	took := max(int64(to.Sub(from)/time.Minute)+1, 1)
	if took > 360 {
		took = took / 60 * 60
	}
	return took
}

// naive counts changes without any help.
func (e *ending) naive(name string, changes []wanted) record.OutcomeSum {
	out, codes := record.OutcomeSum{Name: name, Reasons: []record.CodeCount{}}, map[fault.Code]int{}
	var reviews, merges []int64
	for _, w := range changes {
		if w.state == "refused" {
			out.Refused++
			codes[fault.Code(w.code)]++
			continue
		}
		out.Proposed++
		old := dayOf(e.clock.now)-dayOf(w.at) >= 7
		switch {
		case w.state == "merged":
			out.Merged++
			if !w.revised.IsZero() {
				out.Revised++
			}
		case w.state == "closed":
			out.Closed++
		case w.state == "gone":
			out.Gone++
		case w.reviewed.IsZero() && old:
			out.Ignored++
		default:
			out.Open++
		}
		reviewed := w.reviewed
		if reviewed.IsZero() && (w.state == "merged" || w.state == "closed") {
			reviewed = w.ended
		}
		if !reviewed.IsZero() {
			reviews = append(reviews, minutes(w.at, reviewed))
		}
		if w.state == "merged" {
			merges = append(merges, minutes(w.at, w.ended))
		}
	}
	for code, n := range codes {
		out.Reasons = append(out.Reasons, record.CodeCount{Code: code, Count: n})
	}
	slices.SortFunc(out.Reasons, func(a, b record.CodeCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code))
	})
	for _, m := range []struct {
		of  []int64
		out *int64
	}{{reviews, &out.MinutesToReview}, {merges, &out.MinutesToMerge}} {
		if slices.Sort(m.of); len(m.of) > 0 {
			*m.out = m.of[(len(m.of)-1)/2]
		}
	}
	return out
}

// check compares the report of each grouping with the naive count.
func (e *ending) check(after string) {
	e.Helper()
	since := e.clock.now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -e.IntN(20))
	var changes []wanted
	for _, w := range e.all() {
		if !w.at.Before(since) {
			changes = append(changes, w)
		}
	}
	for _, by := range record.OutcomesBys() {
		got := must.Get(e.stores[e.IntN(2)].History.Outcomes(e.Context(), since.Add(3*time.Hour), by))(e.T)
		want := record.OutcomeReport{Since: since, By: by, Total: e.naive("", changes), Groups: []record.OutcomeSum{}}
		groups := map[string][]wanted{}
		for _, w := range changes {
			if name := w.group(by); name != "" {
				groups[name] = append(groups[name], w)
			}
		}
		for name, some := range groups {
			want.Groups = append(want.Groups, e.naive(name, some))
		}
		slices.SortFunc(want.Groups, func(a, b record.OutcomeSum) int {
			return cmp.Or(cmp.Compare(b.Changes(), a.Changes()), cmp.Compare(a.Name, b.Name))
		})
		got.Groups = slices.DeleteFunc(got.Groups, func(g record.OutcomeSum) bool { return g.Changes() == 0 })
		for i := range got.Groups {
			got.Groups[i].CostUSD, got.Groups[i].CostPerMerge = 0, 0
		}
		got.Total.CostUSD, got.Total.CostPerMerge = 0, 0
		e.Log(after)
		wantEqual(e.T, got, want)
	}
}

// The outcomes equal a naive count of all records, in whatever order they were made.
func TestOutcomesAreWhatANaiveCountFinds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			e := &ending{newRecounted(t, seed, 48), map[string]float64{}}
			for n := range 80 {
				if did := e.step(); n%4 == 3 { // what was counted wrongly stays so
					e.check(did)
				}
			}
		})
	}
}

// What sessions cost counts for those whose pull requests they opened, and in the total whatever they did.
func TestCostsOfOutcomes(t *testing.T) {
	t.Parallel()
	s, n := openNew(t), 0
	session := func(id string, tier gitprovider.Tier, cost float64) {
		r := sessions.Record{ID: id, StartedAt: noon(), Ending: sessions.Ending{State: sessions.StateSucceeded}}
		r.Tier, r.CostUSD = tier, cost
		wantEqual(t, s.AgentSessions.BeginSession(t.Context(), r), nil)
	}
	opens := func(session, caller, repo string) {
		n++
		id := fmt.Sprint("p", n)
		p, a := proposal(id, fmt.Sprintf("checks/%d.md", n)), attempt(id)
		p.Session, p.Caller, p.Repo, a.Session, a.Caller, a.Repo = session, caller, repo, session, caller, repo
		a.Outcome, a.Code, a.Verdicts, a.PRNumber = record.OutcomeOpened, "", nil, n
		wantEqual(t, reserve(t, s, p, 1<<40), (*record.Proposal)(nil))
		wantEqual(t, s.Ledger.Finish(t.Context(), id, record.Progress{State: record.StateOpened, PRNumber: n}, a), nil)
		key := record.PullKey{Provider: "local", Owner: p.Owner, Repo: repo, Number: n}
		seen, _, err := s.Pulls.FindPull(t.Context(), key)
		wantEqual(t, err, nil)
		seen.State, seen.EndedAt = gitprovider.StateMerged, noon()
		must.Get(s.Pulls.SeePull(t.Context(), seen, nil))(t)
	}
	session("one", 1, 3)
	session("two", 2, 1)
	session("idle", 2, 0.5)
	opens("one", "ann", "mail")
	opens("one", "ann", "mail")
	opens("one", "ann", "web")
	opens("two", "bob", "web")
	for by, want := range map[record.OutcomesBy]map[string][2]float64{
		record.ByAgent: {"ann": {3, 1}, "bob": {1, 1}}, record.ByRepository: {"demo/mail": {2, 1}, "demo/web": {2, 1}},
		record.ByTier: {"1": {3, 0}, "2": {1.5, 1.5 / 4}}, record.BySession: {"one": {3, 1}, "two": {1, 1}, "idle": {0.5, 0}},
	} {
		got := must.Get(s.History.Outcomes(context.Background(), noon(), by))(t)
		wantEqual(t, [2]float64{got.Total.CostUSD, got.Total.CostPerMerge}, [2]float64{4.5, 4.5 / 4})
		wantEqual(t, len(got.Groups), len(want))
		for _, g := range got.Groups {
			if w := want[g.Name]; math.Abs(g.CostUSD-w[0])+math.Abs(g.CostPerMerge-w[1]) > 1e-9 {
				t.Errorf("by %s, %s cost %v, %v for each merged, want %v", by, g.Name, g.CostUSD, g.CostPerMerge, w)
			}
		}
	}
}
