package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/records/record"
)

// maxSearch bounds the text of an attempt that a search looks at, in bytes.
const maxSearch = 2000

// indexAttempt notes a row of the audit among the attempts, if it is about a proposal.
func indexAttempt(ctx context.Context, tx *sql.Tx, row auditRow) error {
	if !slices.Contains(record.ProposalActions(), row.Action) {
		return nil
	}
	stored := make(map[string]string, len(row.columns))
	for _, c := range row.columns {
		stored[c.name] = c.text()
	}
	search := stored["title"] + " " + stored["paths"]
	search = strings.ToValidUTF8(search[:min(len(search), boundsOf(row.Outcome).search)], "")
	_, err := tx.ExecContext(ctx, `INSERT INTO attempts
		(seq, time_us, request_id, provider, repo, door, caller, outcome, code, search, session)
		VALUES (`+placeholders(1, 11)+`)`,
		row.Seq, micros(row.Time), stored["request_id"], stored["provider"], lowerASCII(stored["owner"]+"/"+stored["repo"]),
		stored["door"], stored["caller"], stored["outcome"], stored["code"], lowerASCII(search),
		textColumn(bound(row.Session, maxWord)))
	if err != nil {
		return err
	}
	if err := keepWanted(ctx, tx, row); err != nil {
		return err
	}
	if err := countDay(ctx, tx, "outcome", row.Time, stored["outcome"]); err != nil {
		return err
	}
	if row.Action == record.ActionSettle {
		if err := countSettled(ctx, tx, row); err != nil {
			return err
		}
	}
	if row.Outcome == record.OutcomeRefused {
		if err := countDay(ctx, tx, "code", row.Time, stored["code"]); err != nil {
			return err
		}
		if err := countRefused(ctx, tx, row, stored); err != nil {
			return err
		}
	}
	refused := sql.NullInt64{Int64: micros(row.Time), Valid: row.Outcome == record.OutcomeRefused}
	var denied []record.Gate
	for _, v := range row.Verdicts {
		if v.Ruling != record.Deny || slices.Contains(denied, v.Gate) {
			continue
		}
		denied = append(denied, v.Gate)
		const insert = `INSERT INTO attempt_gates (gate, seq, refused_us) VALUES ($1, $2, $3)`
		if _, err := tx.ExecContext(ctx, insert, textColumn(bound(string(v.Gate), maxWord)), row.Seq, refused); err != nil {
			return err
		}
		if !refused.Valid {
			continue
		}
		if err := countDay(ctx, tx, "gate", row.Time, bound(string(v.Gate), maxWord)); err != nil {
			return err
		}
	}
	return nil
}

// allDays stands in day_counts for all days together.
const allDays = -1

// countDay counts something of a day, and of all days.
func countDay(ctx context.Context, tx *sql.Tx, kind string, at time.Time, name string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO day_counts (kind, day, name, count) VALUES ($1, $2, $4, 1), ($1, $3, $4, 1)
		ON CONFLICT (kind, day, name) DO UPDATE SET count = day_counts.count + 1`, kind, dayOf(at), allDays, textColumn(name))
	return err
}

// countSettled counts an attempt that failed and that the row settles: it does not count as a separate change any more.
func countSettled(ctx context.Context, tx *sql.Tx, row auditRow) error {
	var outcome string
	err := tx.QueryRowContext(ctx, `SELECT a.outcome FROM audit JOIN attempts a ON a.seq = audit.seq
		WHERE audit.request_id = $1 AND audit.seq < $2 ORDER BY audit.seq DESC LIMIT 1`,
		textColumn(bound(row.RequestID, maxWord)), row.Seq).Scan((*textColumn)(&outcome))
	if errors.Is(err, sql.ErrNoRows) || err == nil && outcome != string(record.OutcomeFailed) {
		return nil
	}
	if err != nil {
		return err
	}
	return countDay(ctx, tx, "settled", row.Time, outcome)
}

// dayOf returns the number of a day since 1970, UTC.
func dayOf(t time.Time) int64 { return micros(t) / (24 * time.Hour).Microseconds() }

// lowerASCII folds as SQL's LOWER does under the collation of our columns.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// Attempts returns one page of the attempts at proposals, newest first. The next one starts Before the last number of
// this one: rows are only ever added at the front, so that no page repeats or leaves out any. The page before it comes
// After its first number.
func (h *History) Attempts(ctx context.Context, q record.AttemptQuery) ([]record.RecordedAttempt, error) {
	selected, args := h.db.attemptClauses(q)
	return h.attempts(ctx, "WHERE audit.seq IN ("+selected+") ORDER BY audit.seq DESC", args...)
}

// AttemptsOf returns what is recorded under a request id, oldest first, at most 100 rows: an attempt, and what settled
// it.
func (h *History) AttemptsOf(ctx context.Context, requestID string) ([]record.RecordedAttempt, error) {
	return h.attempts(ctx, "WHERE audit.request_id = $1 ORDER BY audit.seq LIMIT 100", textColumn(bound(requestID, maxWord)))
}

// attempts reads what changes of the rows that the clauses select, and of the rows themselves, which never change,
// those that are not in memory.
func (h *History) attempts(ctx context.Context, clauses string, args ...any) (out []record.RecordedAttempt, err error) {
	err = h.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		found, err := selectRows(ctx, tx, func(rows *sql.Rows, f *foundAttempt) error {
			return rows.Scan(&f.seq, &f.hash, (*textColumn)(&f.session), (*textColumn)(&f.state))
		}, "SELECT audit.seq, audit.hash, COALESCE(a.session, ''), COALESCE(p.state, '') FROM audit LEFT JOIN attempts a "+
			"ON a.seq = audit.seq "+
			"LEFT JOIN proposals p ON p.id = audit.request_id "+clauses, args...)
		if err != nil {
			return err
		}
		rows, err := h.db.auditRows(ctx, tx, found)
		if err != nil {
			return err
		}
		out = make([]record.RecordedAttempt, len(found))
		for i, f := range found {
			out[i] = rows[f.hash]
			out[i].Session, out[i].State = f.session, record.ProposalState(f.state)
		}
		return nil
	})
	return out, err
}

// foundAttempt identifies a row of the audit, and holds the values beside it that may change.
type foundAttempt struct {
	seq            int64
	hash           string
	session, state string // the agent's session that it was made in, and the state of the proposal
}

// unindexed behind a column of texts keeps an index of it from being used.
const unindexed = " || ''"

// attemptQuery builds the query of the numbers of a page of attempts.
type attemptQuery struct {
	conditions
	from, order string
	plain       string // unindexed, if the order of the rows is worth more than the indexes of what narrows them
}

// attemptClauses selects what q asks for. Its provider is looked for as the database has it, and had it before roots
// had identities.
func (d *database) attemptClauses(q record.AttemptQuery) (query string, args []any) {
	stored, trigrams := d.stored(q.Provider), d.opts.DatabaseURL == ""
	c := attemptQuery{from: "attempts", order: "attempts.seq", conditions: conditions{texts: []string{"1 = 1"}}}
	if q.Gate != "" { // its index has the rows in their order, and so comes first
		c.from, c.order, c.texts[0] = "attempt_gates g CROSS JOIN attempts", "g.seq", "attempts.seq = g.seq"
	}
	if usesTabLists(q) {
		c.order, c.texts[0] = "t.seq", "attempts.seq = t.seq"
	}
	if q.Search != "" {
		c.addSearch(lowerASCII(escape(bound(q.Search, maxWord))), trigrams)
	}
	if q.Before != 0 {
		c.add(c.order+" < $%d", q.Before)
	}
	direction := "DESC"
	if q.After != 0 {
		direction = "ASC"
		c.add(c.order+" > $%d", q.After)
	}
	if q.Repo != "" {
		c.add("repo"+c.plain+" = $%d", textColumn(lowerASCII(bound(q.Repo, 2*maxName))))
	}
	if q.Provider == stored {
		c.equals("provider"+c.plain+" = $%d", q.Provider)
	} else {
		c.add("provider"+c.plain+" IN ('"+localProvider+"', $%d)", textColumn(stored))
	}
	c.equals("door"+c.plain+" = $%d", string(q.Door))
	c.equals("caller"+c.plain+" = $%d", record.RecordedCaller(q.Caller))
	c.equals("session = $%d", q.Session)
	c.equals("outcome"+c.plain+" = $%d", string(q.Outcome))
	c.equals("code"+c.plain+" = $%d", string(q.Code))
	// The plus keeps the databases from sorting what an index on the time has found: the rows come almost in order of
	// time.
	if !q.Since.IsZero() {
		c.add("+time_us >= $%d", micros(q.Since))
	}
	if !q.Until.IsZero() {
		c.add("+time_us < $%d", micros(q.Until))
	}
	c.equals("g.gate = $%d", string(q.Gate))
	c.equals("request_id"+c.plain+" IN (SELECT proposal_id FROM pulls WHERE state = $%d)", string(q.Pull))
	if (q.Tab != "" || q.Changes) && !usesTabLists(q) {
		c.tab(q.Tab, d.own(), d.now())
	}
	lists := []string{"SELECT attempts.seq FROM " + c.from + " WHERE " + c.where()}
	if usesTabLists(q) {
		lists, c.order = c.merged(q.Tab, d.own(), d.now()), "1"
	}
	limit := c.limitRows(q.Limit, record.DefaultAttemptLimit, record.MaxAttemptLimit)
	return fmt.Sprintf("%s ORDER BY %s %s LIMIT $%d", strings.Join(lists, " UNION ALL "), c.order, direction,
		limit), c.args
}

// merged returns the queries of the lists that a tab consists of, each in its order.
func (c *attemptQuery) merged(tab record.Tab, own textColumn, now time.Time) (queries []string) {
	where := c.where()
	for _, list := range c.tabTables(tab, own, now) {
		queries = append(queries, "SELECT t.seq FROM "+list[0]+" CROSS JOIN attempts WHERE "+where+" AND "+list[1])
	}
	return queries
}

// addSearch looks for part as search does, or for the pull request whose number it is.
func (c *attemptQuery) addSearch(part string, trigrams bool) {
	number, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimSpace(part), "#"), 10, 64)
	if err != nil || number < 1 {
		c.filterText(part, trigrams)
		return
	}
	texts := ""
	switch {
	case utf8.RuneCountInString(part) < 3: // too short for a useful search in titles
	case trigrams:
		c.args = append(c.args, `"`+part+`"`)
		texts = fmt.Sprintf(" OR attempts.seq IN (SELECT rowid FROM attempt_texts WHERE search MATCH $%d)", len(c.args))
	default:
		c.args = append(c.args, "%"+likeLiteral(part)+"%")
		texts = fmt.Sprintf(" OR attempts.search LIKE $%d ESCAPE '!'", len(c.args))
	}
	c.add("(attempts.seq IN (SELECT seq FROM audit WHERE pr_number > 0 AND pr_number = $%d)"+texts+")", number)
}

// filterText looks for part in titles and paths. trigrams says that the table of SQLite's index of three characters is
// there; PostgreSQL finds its own by itself.
func (c *attemptQuery) filterText(part string, trigrams bool) {
	if trigrams && utf8.RuneCountInString(part) >= 3 {
		// The index gives its rows in their order, so that a page of many hits is read no further than its end.
		c.from, c.order = "attempt_texts t CROSS JOIN "+c.from, "t.rowid"
		c.texts = append(c.texts, "attempts.seq = t.rowid")
		c.add("t.search MATCH $%d", `"`+strings.ReplaceAll(part, `"`, `""`)+`"`)
		return
	}
	if trigrams {
		// This looks at every row in the worst case. In their order on disk that takes a third of the time that it takes
		// through another index, which an expression instead of a column rules out.
		c.plain = unindexed
	}
	c.add("search LIKE $%d ESCAPE '!'", "%"+likeLiteral(part)+"%")
}

// likeLiteral returns a pattern of LIKE, with the escape character '!', that matches the text itself.
func likeLiteral(s string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(s)
}
