package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// taken says of one of proposals that another one has taken its change up.
const taken = `EXISTS (SELECT 1 FROM proposals taken WHERE taken.digest = proposals.digest AND taken.provider = proposals.provider
	AND taken.state IN ('reserved', 'committed', 'unsettled', 'opened'))`

// Bounds of the dry runs that wait: how old they may be, and how many are counted.
const (
	waitFor     = 30 * 24 * time.Hour
	mostWaiting = 1000
)

// standingsOf are where the pull requests of a tab stand; nil for a tab of no pull requests.
func standingsOf(tab record.Tab) []record.Standing {
	switch tab {
	case record.TabWaiting:
		return record.WaitingStandings()
	case record.TabAgent:
		return []record.Standing{record.StandingAgent}
	case record.TabMerged:
		return []record.Standing{record.Standing(gitprovider.StateMerged)}
	case record.TabClosed:
		return []record.Standing{record.Standing(gitprovider.StateClosed), record.Standing(record.StateGone)}
	}
	return nil
}

// listed reports whether the changes are to be read from the lists of their tab, which are in order. Where little may
// be left of a tab, it is better to begin with what narrows it.
func listed(q record.AttemptQuery) bool {
	return standingsOf(q.Tab) != nil && q.Gate == "" && q.Search == "" && q.Repo == "" && q.Caller == "" && q.Code == "" &&
		q.Session == "" && q.Pull == ""
}

// lists are the tables with the changes of a tab, and what selects them there. Each is in the order of t.seq.
func (c *attemptQuery) lists(tab record.Tab, own text, now time.Time) (out [][2]string) {
	for _, standing := range standingsOf(tab) {
		out = append(out, [2]string{"pulls t", "t.standing = '" + string(standing) + "'"})
	}
	if tab == record.TabWaiting {
		c.args = append(c.args, own, micros(now.Add(-waitFor)))
		out = append(out, [2]string{"dry_runs t", dryRunsWait("t", len(c.args)-1, len(c.args))})
	}
	return out
}

// tab narrows to the changes of a tab.
func (c *attemptQuery) tab(tab record.Tab, own text, now time.Time) {
	if standingsOf(tab) == nil {
		c.equals("outcome = $%d", string(tab))
		return
	}
	var found []string
	for _, list := range c.lists(tab, own, now) {
		found = append(found, "EXISTS (SELECT 1 FROM "+list[0]+" WHERE "+list[1]+" AND t.seq = attempts.seq)")
	}
	c.texts = append(c.texts, "outcome IN ('opened', 'dry_run')", "("+strings.Join(found, " OR ")+")")
}

// dryRunsWait selects those of dry_runs that wait; the arguments are the own provider and the time.
func dryRunsWait(table string, own, since int) string {
	return table + ".waits = 1 AND " + oursAt(table+".provider", dollar(own)) +
		" AND " + table + ".created_us >= " + dollar(since)
}

// PullTotals counts the pull requests of ours that are open by where they stand, and with ended the others by their
// state.
func (p *Pulls) PullTotals(ctx context.Context, ended bool) (totals record.PullTotals, err error) {
	err = p.db.read(ctx, func(tx *sql.Tx) error {
		totals, err = p.db.pullTotals(ctx, tx)
		return err
	})
	if !ended {
		for _, state := range record.PullStates() {
			delete(totals, record.Standing(state))
		}
	}
	return totals, err
}

func (d *database) pullTotals(ctx context.Context, tx *sql.Tx) (record.PullTotals, error) {
	totals := record.PullTotals{}
	err := queryRows(ctx, tx, func(rows *sql.Rows) error {
		var standing string
		var n int64
		err := rows.Scan((*text)(&standing), &n)
		totals[record.Standing(standing)] += n
		return err
	}, "SELECT standing, count FROM pull_counts WHERE count > 0 AND "+oursAt("provider", "$1"), d.own())
	return totals, err
}

// TabCounts counts the changes of each tab, and under "" all attempts that made, showed or failed to make one.
func (h *History) TabCounts(ctx context.Context) (counts map[record.Tab]int64, err error) {
	err = h.db.read(ctx, func(tx *sql.Tx) error {
		pulls, err := h.db.pullTotals(ctx, tx)
		if err != nil {
			return err
		}
		counts = map[record.Tab]int64{
			record.TabWaiting: pulls.Waiting(), record.TabAgent: pulls[record.StandingAgent], record.TabMerged: pulls["merged"],
			record.TabClosed: pulls["closed"] + pulls["gone"],
		}
		dryRuns, err := h.db.waitingDryRuns(ctx, tx)
		if err != nil {
			return err
		}
		counts[record.TabWaiting] += dryRuns
		return queryRows(ctx, tx, func(rows *sql.Rows) error {
			var outcome string
			var n int64
			err := rows.Scan((*text)(&outcome), &n)
			counts[""] += n
			if outcome == string(record.OutcomeRefused) {
				counts[record.TabRefused] = n
			}
			return err
		},
			`SELECT name, count FROM day_counts
			WHERE kind = 'outcome' AND day = $1 AND name IN ('opened', 'dry_run', 'refused', 'failed')`, allDays)
	})
	return counts, err
}

// Waiting is how many changes wait for a person, as TabCounts counts them.
func (h *History) Waiting(ctx context.Context) (n int64, err error) {
	err = h.db.read(ctx, func(tx *sql.Tx) error {
		pulls, err := h.db.pullTotals(ctx, tx)
		if err != nil {
			return err
		}
		n, err = h.db.waitingDryRuns(ctx, tx)
		n += pulls.Waiting()
		return err
	})
	return n, err
}

// waitingDryRuns counts the dry runs that wait, at most mostWaiting.
func (d *database) waitingDryRuns(ctx context.Context, tx *sql.Tx) (n int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM dry_runs w WHERE "+dryRunsWait("w", 1, 2)+
		" LIMIT $3) waiting", d.own(), micros(d.opts.Now().Add(-waitFor)), mostWaiting).Scan(&n)
	return n, err
}

// RefusalsByCode counts the attempts that were refused since a time by their codes, the most frequent first. Of a time
// longer ago than a day it counts from the beginning of that day, in UTC.
func (h *History) RefusalsByCode(ctx context.Context, since time.Time) ([]record.CodeCount, error) {
	if h.db.opts.Now().Sub(since) < exactly {
		return h.db.refusals.since(ctx, h.db, micros(since))
	}
	return selectOf(ctx, h.db, func(rows *sql.Rows, out *record.CodeCount) error {
		return rows.Scan((*text)(&out.Code), &out.Count)
	}, `SELECT name, CAST(SUM(count) AS BIGINT) FROM day_counts WHERE kind = 'code' AND day >= $1
		GROUP BY name ORDER BY 2 DESC, name`, dayOf(since))
}
