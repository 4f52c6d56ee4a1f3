package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// countRefused counts a refused attempt in the cells of its day; triggers count pull requests there.
func countRefused(ctx context.Context, tx *sql.Tx, row auditRow, stored map[string]string) error {
	groups := map[record.OutcomesBy]string{
		record.ByAgent: stored["caller"], record.ByTier: strconv.Itoa(int(row.Tier)),
		record.ByRepository: lowerASCII(stored["owner"] + "/" + stored["repo"]),
	}
	if row.Session != "" {
		groups[record.BySession] = escape(bound(row.Session, maxWord))
	}
	for by, group := range groups {
		_, err := tx.ExecContext(ctx, `INSERT INTO outcome_cells (by_what, day, grp, provider, kind, name, value, count)
			VALUES ($1, $2, $3, $4, 'refused', $5, 0, 1) ON CONFLICT (by_what, day, grp, provider, kind, name, value)
			DO UPDATE SET count = outcome_cells.count + 1`, string(by), dayOf(row.Time), group, stored["provider"],
			stored["code"])
		if err != nil {
			return err
		}
	}
	return nil
}

// Outcomes counts how the changes ended that were wanted on the day of since (UTC) or later.
func (h *History) Outcomes(ctx context.Context, since time.Time, by record.OutcomesBy) (record.OutcomeReport, error) {
	since = since.UTC().Truncate(24 * time.Hour)
	groups, total := map[string]*outcomeTally{}, newTally("")
	err := h.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := h.db.tallyCells(ctx, tx, since, by, func(group string, c outcomeCell) {
			tallyOf(groups, group).add(c)
			if by != record.BySession {
				total.add(c)
			}
		})
		if err == nil && by == record.BySession { // not everything is of a session
			err = h.db.tallyCells(ctx, tx, since, record.ByTier, func(_ string, c outcomeCell) { total.add(c) })
		}
		if err != nil {
			return err
		}
		return h.db.tallyCosts(ctx, tx, since, by, groups, total)
	})
	out := record.OutcomeReport{Since: since, By: by, Total: total.sum(), Groups: []record.OutcomeSum{}}
	for _, g := range groups {
		if sum := g.sum(); sum.Changes() > 0 || sum.CostUSD > 0 {
			out.Groups = append(out.Groups, sum)
		}
	}
	slices.SortFunc(out.Groups, func(a, b record.OutcomeSum) int {
		return cmp.Or(cmp.Compare(b.Changes(), a.Changes()), cmp.Compare(a.Name, b.Name))
	})
	out.More = max(len(out.Groups)-record.MaxOutcomeGroups, 0)
	out.Groups = out.Groups[:len(out.Groups)-out.More]
	return out, err
}

// outcomeCell is a number of things of a kind; see the migration for what there is.
type outcomeCell struct {
	kind, name   string
	value, count int64
}

// tallyCells reads the cells of a grouping. A pull request that nobody has reviewed for record.IgnoredAfter days is
// "ignored" and not "waiting".
func (d *database) tallyCells(ctx context.Context, tx *sql.Tx, since time.Time, by record.OutcomesBy,
	add func(group string, c outcomeCell)) error {
	return queryRows(ctx, tx, func(rows *sql.Rows) error {
		var group string
		var c outcomeCell
		err := rows.Scan((*textColumn)(&group), &c.kind, (*textColumn)(&c.name), &c.value, &c.count)
		add(group, c)
		return err
	}, `SELECT grp, kind, CASE WHEN name = 'waiting' AND kind = 'pull' AND day <= $3 THEN 'ignored' ELSE name END, value,
			CAST(SUM(count) AS BIGINT)
		FROM outcome_cells WHERE by_what = $1 AND day >= $2 AND (kind = 'refused' OR `+oursAt("provider", "$4")+`)
		GROUP BY 1, 2, 3, 4 HAVING SUM(count) > 0`,
		string(by), dayOf(since), dayOf(d.now())-record.IgnoredAfter, d.own())
}

// tallyCosts adds what the sessions cost that began since. Of an agent or a repository it is the session's cost by the
// share of the session's pull requests.
func (d *database) tallyCosts(ctx context.Context, tx *sql.Tx, since time.Time, by record.OutcomesBy,
	groups map[string]*outcomeTally, total *outcomeTally) error {
	costs := map[string]int64{}
	err := queryRows(ctx, tx, func(rows *sql.Rows) error {
		var session, tier string
		var cost int64
		err := rows.Scan((*textColumn)(&session), &tier, &cost)
		total.cost += float64(cost)
		costs[session] = cost
		switch by {
		case record.ByTier:
			tallyOf(groups, tier).cost += float64(cost)
		case record.BySession:
			tallyOf(groups, session).cost = float64(cost)
		}
		return err
	}, "SELECT session, CAST(tier AS TEXT), cost_nano_usd FROM agent_session_usage WHERE day >= $1 AND cost_nano_usd > 0",
		since.Format(time.DateOnly))
	if err != nil || len(costs) == 0 || by == record.ByTier || by == record.BySession {
		return err
	}
	return tallyShares(ctx, tx, since, by, groups, costs)
}

// tallyShares shares the costs of sessions among the groups that their pull requests belong to.
func tallyShares(ctx context.Context, tx *sql.Tx, since time.Time, by record.OutcomesBy,
	groups map[string]*outcomeTally, costs map[string]int64) error {
	key := "a.caller"
	if by == record.ByRepository {
		key = "a.repo"
	}
	made, all := map[[2]string]int64{}, map[string]int64{}
	err := queryRows(ctx, tx, func(rows *sql.Rows) error {
		var session, group string
		var n int64
		err := rows.Scan((*textColumn)(&session), (*textColumn)(&group), &n)
		made[[2]string{session, group}] = n
		all[session] += n
		return err
	}, "SELECT a.session, "+key+`, COUNT(*) FROM agent_session_usage u JOIN attempts a ON a.session = u.session
		WHERE u.day >= $1 AND u.cost_nano_usd > 0 AND a.session <> '' AND a.outcome = 'opened' GROUP BY 1, 2`,
		since.Format(time.DateOnly))
	for _, at := range slices.SortedFunc(maps.Keys(made), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if group := groups[at[1]]; group != nil {
			group.cost += float64(costs[at[0]]) * float64(made[at]) / float64(all[at[0]])
		}
	}
	return err
}

// outcomeTally adds up cells.
type outcomeTally struct {
	out           record.OutcomeSum
	refused       map[fault.Code]int64
	reviews, ends map[int64]int64 // how many took how long
	cost          float64         // billionths of a dollar
}

func newTally(name string) *outcomeTally {
	return &outcomeTally{out: record.OutcomeSum{Name: name}, refused: map[fault.Code]int64{}, reviews: map[int64]int64{},
		ends: map[int64]int64{}}
}

func tallyOf(groups map[string]*outcomeTally, name string) *outcomeTally {
	if groups[name] == nil {
		groups[name] = newTally(name)
	}
	return groups[name]
}

func (t *outcomeTally) add(c outcomeCell) {
	switch c.kind {
	case "refused":
		t.out.Refused += c.count
		t.refused[fault.Code(c.name)] += c.count
		return
	case "review":
		t.reviews[c.value] += c.count
		return
	case "merge":
		t.ends[c.value] += c.count
		return
	}
	t.out.Proposed += c.count
	switch c.name {
	case "revised":
		t.out.Revised += c.count
		t.out.Merged += c.count
	case "merged":
		t.out.Merged += c.count
	case "closed":
		t.out.Closed += c.count
	case "gone":
		t.out.Gone += c.count
	case "ignored":
		t.out.Ignored += c.count
	default:
		t.out.Open += c.count
	}
}

// sum returns what was added.
func (t *outcomeTally) sum() record.OutcomeSum {
	const perDollar = 1e9
	out := t.out
	out.Reasons = []record.CodeCount{}
	for code, n := range t.refused {
		out.Reasons = append(out.Reasons, record.CodeCount{Code: code, Count: int(n)})
	}
	slices.SortFunc(out.Reasons, func(a, b record.CodeCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code))
	})
	out.MinutesToReview, out.MinutesToMerge = lowerMedian(t.reviews), lowerMedian(t.ends)
	out.CostUSD = t.cost / perDollar
	if out.Merged > 0 {
		out.CostPerMerge = out.CostUSD / float64(out.Merged)
	}
	return out
}

// lowerMedian returns the median of values that occur so often; the lower one of two, and 0 of none.
func lowerMedian(times map[int64]int64) int64 {
	left := int64(0)
	for _, n := range times {
		left += n
	}
	left = (left + 1) / 2
	for _, value := range slices.Sorted(maps.Keys(times)) {
		if left -= times[value]; left <= 0 {
			return value
		}
	}
	return 0
}
