package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// changeLists are the lists that a tab consists of. Rows and numbers of a tab come from them alone: whatever is listed
// is counted, and nothing else.
type changeLists struct {
	standings []record.NextActor // pull requests of ours that stand so
	dryRuns   ages               // of dry runs of ours that no proposal has taken up
	outcomes  []record.Outcome   // attempts that ended so, and that nothing settled later
}

// ages are the ages of the dry runs of a tab.
type ages int

const (
	noDryRuns ages = iota
	waitingAges
	anyAge
)

// since returns when the oldest of them may have been made.
func (a ages) since(now time.Time) time.Time {
	if a == waitingAges {
		return record.DryRunsWaitSince(now)
	}
	return time.Unix(0, 0)
}

// listsOf returns the lists of a tab; "" is all changes.
func listsOf(tab record.Tab) changeLists {
	const merged, closed, gone = record.NextActor(gitprovider.StateMerged), record.NextActor(gitprovider.StateClosed),
		record.NextActor(record.StateGone)
	switch tab {
	case record.TabWaiting:
		return changeLists{standings: record.WaitingStandings(), dryRuns: waitingAges}
	case record.TabAgent:
		return changeLists{standings: []record.NextActor{record.StandingAgent}}
	case record.TabMerged:
		return changeLists{standings: []record.NextActor{merged}}
	case record.TabClosed:
		return changeLists{standings: []record.NextActor{closed, gone}}
	case record.TabRefused:
		return changeLists{outcomes: []record.Outcome{record.OutcomeRefused}}
	}
	return changeLists{
		standings: append(record.WaitingStandings(), record.StandingAgent, merged, closed, gone), dryRuns: anyAge,
		outcomes: []record.Outcome{record.OutcomeRefused, record.OutcomeFailed},
	}
}

// usesTabLists reports whether the changes are to be read from the lists of their tab, which are in order. Where little
// may be left of a tab, it is better to begin with what narrows it; all changes are nearly all attempts.
func usesTabLists(q record.AttemptQuery) bool {
	return q.Tab != "" && q.Tab != record.TabRefused && q.Gate == "" && q.Search == "" && q.Repo == "" &&
		q.Caller == "" && q.Code == "" && q.Session == "" && q.Pull == ""
}

// tabTables returns the tables with the changes of a tab, and what selects them there. Each is in the order of t.seq.
func (c *attemptQuery) tabTables(tab record.Tab, own textColumn, now time.Time) (out [][2]string) {
	lists := listsOf(tab)
	c.args = append(c.args, own)
	owner := len(c.args)
	for _, standing := range lists.standings {
		out = append(out, [2]string{"pulls t",
			"t.standing = '" + string(standing) + "' AND " + oursAt("t.provider", dollar(owner))})
	}
	if lists.dryRuns != noDryRuns {
		c.args = append(c.args, micros(lists.dryRuns.since(now)))
		out = append(out, [2]string{"dry_runs t", dryRunsWait("t", owner, len(c.args))})
	}
	return out
}

// tab narrows to the changes of a tab. Of several outcomes none is looked up in its index: the attempts would be
// gathered from there and sorted, all of them for one page.
func (c *attemptQuery) tab(tab record.Tab, own textColumn, now time.Time) {
	var either []string
	if len(listsOf(tab).outcomes) != 1 {
		c.plain = unindexed
	}
	for _, outcome := range listsOf(tab).outcomes {
		either = append(either, "outcome"+c.plain+" = '"+string(outcome)+"'")
		if outcome == record.OutcomeFailed {
			either[len(either)-1] = "(" + either[len(either)-1] + " AND NOT EXISTS (SELECT 1 FROM audit later WHERE " +
				"later.request_id = attempts.request_id AND later.seq > attempts.seq AND later.action" + unindexed + " = '" +
				record.ActionSettle + "'))"
		}
	}
	if tab != record.TabRefused {
		for _, list := range c.tabTables(tab, own, now) {
			outcome, id := "opened", "t.proposal_id"
			if list[0] == "dry_runs t" {
				outcome, id = "dry_run", "t.id"
			}
			either = append(either, "(outcome"+c.plain+" = '"+outcome+"' AND EXISTS (SELECT 1 FROM "+list[0]+" WHERE "+list[1]+
				" AND "+id+" = attempts.request_id AND t.seq = attempts.seq))")
		}
	}
	c.texts = append(c.texts, "("+strings.Join(either, " OR ")+")")
}

// dryRunsWait selects those of dry_runs that wait; the arguments are the own provider and the time.
func dryRunsWait(table string, own, since int) string {
	return table + ".waits = 1 AND " + oursAt(table+".provider", dollar(own)) +
		" AND " + table + ".created_us >= " + dollar(since)
}

// PullTotals counts the pull requests of ours that are open by where they stand, and with ended the others by their
// state.
func (p *Pulls) PullTotals(ctx context.Context, ended bool) (totals record.PullTotals, err error) {
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		totals, err = p.db.pullTotals(ctx, tx)
		return err
	})
	if !ended {
		for _, state := range record.PullStates() {
			delete(totals, record.NextActor(state))
		}
	}
	return totals, err
}

func (d *database) pullTotals(ctx context.Context, tx *sql.Tx) (record.PullTotals, error) {
	totals := record.PullTotals{}
	err := queryRows(ctx, tx, func(rows *sql.Rows) error {
		var standing string
		var n int64
		err := rows.Scan((*textColumn)(&standing), &n)
		totals[record.NextActor(standing)] += n
		return err
	}, "SELECT standing, count FROM pull_counts WHERE count > 0 AND "+oursAt("provider", "$1"), d.own())
	return totals, err
}

// FrameCounts counts in one query what every page of the dashboard shows beside its own content.
func (h *History) FrameCounts(ctx context.Context) (out record.FrameCounts, err error) {
	now := h.db.now()
	counted := map[string]int64{} // by kind and name
	err = h.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return queryRows(ctx, tx, func(rows *sql.Rows) error {
			var kind, name string
			var n int64
			err := rows.Scan((*textColumn)(&kind), (*textColumn)(&name), &n)
			counted[kind+name] = n
			return err
		}, frameQuery, h.db.own(), allDays, dayOf(waitingAges.since(now)), micros(now))
	})
	if err != nil {
		return out, err
	}
	out = record.FrameCounts{Tabs: map[record.Tab]int64{}, Pulls: record.PullTotals{}, Running: counted["running"],
		Paused: counted["paused"]}
	for _, standing := range append(record.WaitingStandings(), record.StandingAgent) {
		out.Pulls[standing] = counted["pull"+string(standing)]
	}
	for _, tab := range append([]record.Tab{""}, record.Tabs()...) {
		lists := listsOf(tab)
		for _, standing := range lists.standings {
			out.Tabs[tab] += counted["pull"+string(standing)]
		}
		for _, outcome := range lists.outcomes { // without those that something settled later
			out.Tabs[tab] += counted["outcome"+string(outcome)] - counted["settled"+string(outcome)]
		}
		switch lists.dryRuns {
		case waitingAges:
			out.Tabs[tab] += counted["waiting"]
		case anyAge:
			out.Tabs[tab] += counted["dry run"]
		}
	}
	return out, nil
}

// frameQuery takes the own provider, allDays, the first day of the dry runs that wait, and the time.
//
//nolint:gochecknoglobals // of constants alone; never changed
var frameQuery = `SELECT 'pull', standing, CAST(SUM(count) AS BIGINT) FROM pull_counts
		WHERE count > 0 AND ` + oursAt("provider", "$1") + ` GROUP BY standing
	UNION ALL SELECT kind, name, count FROM day_counts WHERE kind IN ('outcome', 'settled') AND day = $2
	UNION ALL SELECT 'dry run', '', CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM day_counts
		WHERE kind = 'waiting' AND day = $2 AND ` + oursAt("name", "$1") + `
	UNION ALL SELECT 'waiting', '', CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM day_counts
		WHERE kind = 'waiting' AND day >= $3 AND ` + oursAt("name", "$1") + `
	UNION ALL SELECT 'running', '', COUNT(*) FROM agent_sessions WHERE state = 'running'
	UNION ALL SELECT 'paused', '', COUNT(*) FROM pauses WHERE until_us = 0 OR until_us > $4`

// RefusalsByCode counts the attempts that were refused since a time by their codes, the most frequent first. Of a time
// longer ago than a day it counts from the beginning of that day, in UTC.
func (h *History) RefusalsByCode(ctx context.Context, since time.Time) ([]record.CodeCount, error) {
	if h.db.now().Sub(since) < exactly {
		return h.db.refusals.since(ctx, h.db, micros(since))
	}
	return selectOf(ctx, h.db, func(rows *sql.Rows, out *record.CodeCount) error {
		return rows.Scan((*textColumn)(&out.Code), &out.Count)
	}, `SELECT name, CAST(SUM(count) AS BIGINT) FROM day_counts WHERE kind = 'code' AND day >= $1
		GROUP BY name ORDER BY 2 DESC, name`, dayOf(since))
}

// Totals counts all recorded attempts at proposals by outcome, and the refused ones by the gates that refused them.
func (h *History) Totals(ctx context.Context) (outcomes []record.OutcomeTotal, gates []record.GateTotal, err error) {
	err = h.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return queryRows(ctx, tx, func(rows *sql.Rows) error {
			var kind, name string
			var count int64
			err := rows.Scan((*textColumn)(&kind), (*textColumn)(&name), &count)
			if kind == "outcome" {
				outcomes = append(outcomes, record.OutcomeTotal{Outcome: record.Outcome(name), Count: count})
			} else {
				gates = append(gates, record.GateTotal{Gate: record.Gate(name), Count: count})
			}
			return err
		},
			`SELECT kind, name, count FROM day_counts WHERE kind IN ('outcome', 'gate') AND day = $1 ORDER BY kind, name`,
			allDays)
	})
	return outcomes, gates, err
}

// OpenPullCounts counts our open pull requests, by their last known state, by repository and age. It returns at most
// limit repositories, those with the most first; rest is the sum of the others.
func (p *Pulls) OpenPullCounts(ctx context.Context, limit int) (most []record.OpenPulls, rest record.OpenPulls,
	err error) {
	const day = 24 * time.Hour
	now := p.db.now()
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return queryRows(ctx, tx, func(rows *sql.Rows) error {
			var o record.OpenPulls
			err := rows.Scan((*textColumn)(&o.Provider), (*textColumn)(&o.Owner), (*textColumn)(&o.Name), &o.Day, &o.Week,
				&o.Month, &o.Older)
			o.Provider = p.db.publicProvider(o.Provider)
			if len(most) < limit {
				most = append(most, o)
				return err
			}
			rest.Day, rest.Week, rest.Month, rest.Older = rest.Day+o.Day, rest.Week+o.Week, rest.Month+o.Month, rest.Older+
				o.Older
			return err
		}, `SELECT provider, owner, repo, SUM(CASE WHEN at >= $1 THEN 1 ELSE 0 END), SUM(CASE WHEN at < $1 AND at >= $2 THEN 1 ELSE 0 END),
				SUM(CASE WHEN at < $2 AND at >= $3 THEN 1 ELSE 0 END), SUM(CASE WHEN at < $3 THEN 1 ELSE 0 END)
			FROM (SELECT r.provider, r.owner, r.repo, COALESCE(p.opened_us, r.updated_us) AS at`+fromPulls+`WHERE r.state = 'open' AND `+oursAt("r.provider", "$4")+`) opened
			GROUP BY provider, owner, repo ORDER BY COUNT(*) DESC, provider, owner, repo`,
			micros(now.Add(-day)), micros(now.Add(-7*day)), micros(now.Add(-30*day)), p.db.own())
	})
	return most, rest, err
}
