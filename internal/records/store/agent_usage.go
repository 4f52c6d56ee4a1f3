package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// nano is the number of stored units in one USD.
const nano = 1e9

// saveUsage keeps what a session used beside its record.
func saveUsage(ctx context.Context, tx *sql.Tx, r sessions.Record) error {
	if r.State == sessions.StateSkipped {
		return nil // it never began
	}
	const save = `INSERT INTO agent_session_usage (session, day, tier, state,
			input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nano_usd, cost_source, boundary)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (session) DO UPDATE SET state = excluded.state, boundary = excluded.boundary, input_tokens = excluded.input_tokens,
			output_tokens = excluded.output_tokens, cache_read_tokens = excluded.cache_read_tokens,
			cache_write_tokens = excluded.cache_write_tokens, cost_nano_usd = excluded.cost_nano_usd, cost_source = excluded.cost_source`
	_, err := tx.ExecContext(ctx, save, text(r.ID), r.StartedAt.UTC().Format(time.DateOnly), int64(r.Tier), text(r.State),
		r.InputTokens, r.OutputTokens, r.CacheReadTokens, r.CacheWriteTokens, int64(math.Round(r.CostUSD*nano)),
		text(r.CostSource), text(boundaryOf(r)))
	return err
}

// boundaryOf returns the kind of a session's boundary; "" where it is not recorded.
func boundaryOf(r sessions.Record) string {
	if r.Boundary == nil {
		return ""
	}
	return string(r.Boundary.Kind)
}

// SessionsByBoundary counts the sessions that have ended by the kind of boundary that held; "" for those of which that
// is not recorded.
func (s *AgentSessions) SessionsByBoundary(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	err := s.db.query(ctx, func(rows *sql.Rows) error {
		var kind text
		var n int64
		err := rows.Scan(&kind, &n)
		counts[string(kind)] = n
		return err
	}, "SELECT boundary, COUNT(*) FROM agent_session_usage WHERE state <> 'running' GROUP BY boundary")
	return counts, err
}

// Endings counts the sessions that began on or after the day, in UTC, of a time, by how far they are or how they ended.
// Those that were skipped never began.
func (s *AgentSessions) Endings(ctx context.Context, since time.Time) (map[sessions.State]int, error) {
	counts := map[sessions.State]int{}
	err := s.db.query(ctx, func(rows *sql.Rows) error {
		var state text
		var n int
		err := rows.Scan(&state, &n)
		counts[sessions.State(state)] = n
		return err
	}, "SELECT state, COUNT(*) FROM agent_session_usage WHERE day >= $1 GROUP BY state", since.UTC().Format(time.DateOnly))
	return counts, err
}

const usageSums = `COUNT(*), CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT), CAST(SUM(cache_read_tokens) AS BIGINT),
	CAST(SUM(cache_write_tokens) AS BIGINT), CAST(SUM(cost_nano_usd) AS BIGINT), cost_source`

func scanUsage(rows *sql.Rows, g *sessions.UsageGroup, word *text) error {
	var tier, cost int64
	err := rows.Scan(word, &tier, &g.Sessions, &g.InputTokens, &g.OutputTokens, &g.CacheReadTokens, &g.CacheWriteTokens,
		&cost, (*text)(&g.CostSource))
	g.Tier, g.CostUSD = gitprovider.Tier(tier), float64(cost)/nano
	return err
}

// UsageByDay sums what sessions used that began on or after the day, in UTC, of a time: by that day and by tier, the
// newest day and the lowest tier first. Sessions that run are among them, as far as they are.
func (s *AgentSessions) UsageByDay(ctx context.Context, since time.Time) ([]sessions.UsageGroup, error) {
	parts, err := selectOf(ctx, s.db, func(rows *sql.Rows, g *sessions.UsageGroup) error {
		return scanUsage(rows, g, (*text)(&g.Day))
	}, "SELECT day, tier, "+usageSums+` FROM agent_session_usage WHERE day >= $1
		GROUP BY day, tier, cost_source ORDER BY day DESC, tier`, since.UTC().Format(time.DateOnly))
	var out []sessions.UsageGroup
	for _, p := range parts {
		if last := len(out) - 1; last >= 0 && out[last].Day == p.Day && out[last].Tier == p.Tier {
			out[last].Sessions += p.Sessions
			out[last].Usage = out[last].Add(p.Usage)
			continue
		}
		out = append(out, p)
	}
	return out, err
}

// UsageOfEnded sums what all sessions used that have ended, by state, tier and source of the cost. Its numbers never
// become smaller.
func (s *AgentSessions) UsageOfEnded(ctx context.Context) ([]sessions.UsageGroup, error) {
	return selectOf(ctx, s.db, func(rows *sql.Rows, g *sessions.UsageGroup) error {
		return scanUsage(rows, g, (*text)(&g.State))
	}, "SELECT state, tier, "+usageSums+` FROM agent_session_usage WHERE state <> 'running'
		GROUP BY state, tier, cost_source ORDER BY state, tier, cost_source`)
}
