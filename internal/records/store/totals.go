package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Totals counts all recorded attempts at proposals by outcome, and the refused ones by the gates that refused them.
func (h *History) Totals(ctx context.Context) (outcomes []record.OutcomeTotal, gates []record.GateTotal, err error) {
	err = h.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return queryRows(ctx, tx, func(rows *sql.Rows) error {
			var kind, name string
			var count int64
			err := rows.Scan((*text)(&kind), (*text)(&name), &count)
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
	err = p.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return queryRows(ctx, tx, func(rows *sql.Rows) error {
			var o record.OpenPulls
			err := rows.Scan((*text)(&o.Provider), (*text)(&o.Owner), (*text)(&o.Name), &o.Day, &o.Week, &o.Month, &o.Older)
			o.Provider = p.db.shown(o.Provider)
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
