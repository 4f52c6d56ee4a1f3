package store

import (
	"context"
	"database/sql"
	"time"

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

// standingOf is record.PullRecord.Standing in SQL.
const standingOf = `CASE WHEN pulls.state <> 'open' THEN pulls.state
	WHEN objections > 0 AND COALESCE(revised_us, 0) <= COALESCE(asked_us, 0) THEN 'agent'
	WHEN checks = 'failure' THEN 'failed' WHEN checks = 'pending' THEN 'running' WHEN objections = 0 AND approvals > 0 THEN 'ready' ELSE 'review' END`

// tab narrows to the changes that stand so. Open ones are few and are looked up; of those that have ended, each attempt
// asks.
func (c *attemptQuery) tab(tab record.Tab, own text, now time.Time) {
	const opened = "attempts.seq IN (SELECT opened_seq FROM pulls JOIN proposals ON proposals.id = pulls.proposal_id " +
		"WHERE pulls.state = 'open' AND "
	ended := "EXISTS (SELECT 1 FROM pulls WHERE pulls.proposal_id = attempts.request_id AND pulls.state "
	switch tab {
	case "":
	case record.TabWaiting:
		c.args = append(c.args, own, micros(now.Add(-waitFor)))
		c.texts = append(c.texts, opened+standingOf+
			" <> 'agent' UNION ALL SELECT audit.seq FROM audit WHERE request_id IN (SELECT id FROM proposals "+
			whereWaiting(len(c.args)-1, len(c.args))+"))")
	case record.TabAgent:
		c.texts = append(c.texts, opened+standingOf+" = 'agent')")
	case record.TabMerged:
		c.texts = append(c.texts, "outcome = 'opened'", ended+"= 'merged')")
	case record.TabClosed:
		c.texts = append(c.texts, "outcome = 'opened'", ended+"IN ('closed', 'gone'))")
	default:
		c.equals("outcome = $%d", string(tab))
	}
}

// whereWaiting selects the dry runs that wait; the arguments are the own provider and the time.
func whereWaiting(own, since int) string {
	return "WHERE " + oursAt("proposals.provider", dollar(own)) +
		" AND state = 'dry_run' AND pruned_us IS NULL AND created_us >= " + dollar(since) + " AND NOT " + taken
}

// PullTotals counts the pull requests of ours that are open by where they stand, and with ended the others by their
// state. It reads the open ones, and of the others an index.
func (p *Pulls) PullTotals(ctx context.Context, ended bool) (totals record.PullTotals, err error) {
	err = p.db.read(ctx, func(tx *sql.Tx) error {
		totals, err = p.db.pullTotals(ctx, tx, ended)
		return err
	})
	return totals, err
}

func (d *database) pullTotals(ctx context.Context, tx *sql.Tx, ended bool) (record.PullTotals, error) {
	totals := record.PullTotals{}
	count := func(rows *sql.Rows) error {
		var standing string
		var n int64
		err := rows.Scan((*text)(&standing), &n)
		totals[record.Standing(standing)] = n
		return err
	}
	err := queryRows(ctx, tx, count, "SELECT "+standingOf+", COUNT(*) FROM pulls WHERE state = 'open' AND "+
		oursAt("provider", "$1")+" GROUP BY 1", d.own())
	if err == nil && ended {
		err = queryRows(ctx, tx, count, "SELECT state, COUNT(*) FROM pulls WHERE state IN ('closed', 'gone', 'merged') AND "+
			oursAt("provider", "$1")+" GROUP BY state", d.own())
	}
	return totals, err
}

// TabCounts counts the changes of each tab, and under "" all attempts that made, showed or failed to make one.
func (h *History) TabCounts(ctx context.Context) (counts map[record.Tab]int64, err error) {
	err = h.db.read(ctx, func(tx *sql.Tx) error {
		pulls, err := h.db.pullTotals(ctx, tx, true)
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
			`SELECT name, CAST(SUM(count) AS BIGINT) FROM day_counts WHERE kind = 'outcome' AND name IN ('opened', 'dry_run', 'refused', 'failed') GROUP BY name`)
	})
	return counts, err
}

// Waiting is how many changes wait for a person, as TabCounts counts them.
func (h *History) Waiting(ctx context.Context) (n int64, err error) {
	err = h.db.read(ctx, func(tx *sql.Tx) error {
		pulls, err := h.db.pullTotals(ctx, tx, false)
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
	err = tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM proposals "+whereWaiting(1, 2)+" LIMIT $3) waiting",
		d.own(), micros(d.opts.Now().Add(-waitFor)), mostWaiting).Scan(&n)
	return n, err
}

// exactly is for how long back refusals are counted by their time. What is longer ago is counted by days.
const exactly = 25 * time.Hour

// RefusalsByCode counts the attempts that were refused since a time by their codes, the most frequent first. Of a time
// longer ago than a day it counts from the beginning of that day, in UTC.
func (h *History) RefusalsByCode(ctx context.Context, since time.Time) ([]record.CodeCount, error) {
	query, from := `SELECT name, CAST(SUM(count) AS BIGINT) FROM day_counts WHERE kind = 'code' AND day >= $1 GROUP BY name ORDER BY 2 DESC, name`, dayOf(since)
	if h.db.opts.Now().Sub(since) < exactly {
		query, from = `SELECT code, COUNT(*) FROM attempts WHERE outcome = 'refused' AND time_us >= $1 GROUP BY code ORDER BY 2 DESC, code`, micros(since)
	}
	return selectOf(ctx, h.db, func(rows *sql.Rows,
		out *record.CodeCount) error {
		return rows.Scan((*text)(&out.Code), &out.Count)
	}, query, from)
}
