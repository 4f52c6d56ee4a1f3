package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/record"
)

// maxSearch bounds the text of an attempt that a search looks at, in bytes.
const maxSearch = 2000

// indexAttempt notes a row of the audit among the attempts, if it is about a proposal. What it writes is what the
// migration that made the tables took from older rows.
func indexAttempt(ctx context.Context, tx *sql.Tx, row auditRow) error {
	if !slices.Contains(record.ProposalActions(), row.Action) {
		return nil
	}
	stored := make(map[string]string, len(row.columns))
	for _, c := range row.columns {
		stored[c.name] = c.text()
	}
	search := stored["title"] + " " + stored["paths"]
	search = strings.ToValidUTF8(search[:min(len(search), maxSearch)], "")
	_, err := tx.ExecContext(ctx, `INSERT INTO attempts
		(seq, time_us, request_id, provider, repo, door, caller, outcome, code, search, session)
		VALUES (`+placeholders(1, 11)+`)`,
		row.Seq, micros(row.Time), stored["request_id"], stored["provider"], lowerASCII(stored["owner"]+"/"+stored["repo"]),
		stored["door"], stored["caller"], stored["outcome"], stored["code"], lowerASCII(search), text(bound(row.Session, maxWord)))
	if err != nil {
		return err
	}
	if err := keepWanted(ctx, tx, row); err != nil {
		return err
	}
	if err := countDay(ctx, tx, "outcome", row.Time, stored["outcome"]); err != nil {
		return err
	}
	refused := sql.NullInt64{Int64: micros(row.Time), Valid: row.Outcome == record.OutcomeRefused}
	var denied []record.Gate
	for _, v := range row.Verdicts {
		if v.Ruling != record.Deny || slices.Contains(denied, v.Gate) {
			continue
		}
		denied = append(denied, v.Gate)
		const insert = `INSERT INTO attempt_gates (gate, seq, refused_us) VALUES ($1, $2, $3)`
		if _, err := tx.ExecContext(ctx, insert, text(bound(string(v.Gate), maxWord)), row.Seq, refused); err != nil {
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

// countDay counts something of a day.
func countDay(ctx context.Context, tx *sql.Tx, kind string, at time.Time, name string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO day_counts (kind, day, name, count) VALUES ($1, $2, $3, 1)
		ON CONFLICT (kind, day, name) DO UPDATE SET count = day_counts.count + 1`, kind, dayOf(at), text(name))
	return err
}

// dayOf is the number of a day since 1970, UTC.
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
// this one: rows are only ever added at the front, so that no page repeats or leaves out any. The one before it is what
// comes After its first number.
func (h *History) Attempts(ctx context.Context, q record.AttemptQuery) ([]record.RecordedAttempt, error) {
	selected, args := attemptClauses(q, h.db.opts.DatabaseURL == "")
	return h.attempts(ctx, "WHERE seq IN ("+selected+") ORDER BY seq DESC", args...)
}

// AttemptsOf returns what is recorded under a request id, oldest first, at most 100 rows: an attempt, and what settled it.
func (h *History) AttemptsOf(ctx context.Context, requestID string) ([]record.RecordedAttempt, error) {
	return h.attempts(ctx, "WHERE request_id = $1 ORDER BY seq LIMIT 100", text(bound(requestID, maxWord)))
}

func (h *History) attempts(ctx context.Context, clauses string, args ...any) (out []record.RecordedAttempt, err error) {
	err = h.db.read(ctx, func(tx *sql.Tx) error {
		if out, err = h.db.selectAudit(ctx, tx, clauses, args...); err != nil {
			return err
		}
		return withStates(ctx, tx, out)
	})
	return out, err
}

// attemptQuery builds the query of the numbers of a page of attempts.
type attemptQuery struct {
	conditions
	from, order string
	plain       string // behind a column it keeps its index from being used
}

func attemptClauses(q record.AttemptQuery, trigrams bool) (query string, args []any) {
	c := attemptQuery{from: "attempts", order: "attempts.seq", conditions: conditions{texts: []string{"1 = 1"}}}
	if q.Gate != "" { // its index has the rows in their order, and so comes first
		c.from, c.order, c.texts[0] = "attempt_gates g CROSS JOIN attempts", "g.seq", "attempts.seq = g.seq"
	}
	if q.Search != "" {
		c.search(lowerASCII(escape(bound(q.Search, maxWord))), trigrams)
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
		c.add("repo"+c.plain+" = $%d", text(lowerASCII(bound(q.Repo, 2*maxName))))
	}
	c.equals("provider"+c.plain+" = $%d", q.Provider)
	c.equals("door"+c.plain+" = $%d", string(q.Door))
	c.equals("caller"+c.plain+" = $%d", q.Caller)
	c.equals("session = $%d", q.Session)
	c.equals("outcome"+c.plain+" = $%d", string(q.Outcome))
	c.equals("code"+c.plain+" = $%d", string(q.Code))
	// The plus keeps the databases from sorting what an index on the time has found: the rows come almost in order of time.
	if !q.Since.IsZero() {
		c.add("+time_us >= $%d", micros(q.Since))
	}
	if !q.Until.IsZero() {
		c.add("+time_us < $%d", micros(q.Until))
	}
	c.equals("g.gate = $%d", string(q.Gate))
	c.equals("request_id"+c.plain+" IN (SELECT proposal_id FROM pulls WHERE state = $%d)", string(q.Pull))
	limit := c.page(q.Limit, record.DefaultAttemptLimit, record.MaxAttemptLimit)
	return fmt.Sprintf("SELECT attempts.seq FROM %s WHERE %s ORDER BY %s %s LIMIT $%d", c.from, c.where(), c.order, direction, limit), c.args
}

// search looks for part in titles and paths. trigrams says that the table of SQLite's index of three characters is there; PostgreSQL
// finds its own by itself.
func (c *attemptQuery) search(part string, trigrams bool) {
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
		c.plain = " || ''"
	}
	c.add("search LIKE $%d ESCAPE '!'", "%"+likeLiteral(part)+"%")
}

// likeLiteral is a pattern of LIKE, with the escape character '!', that matches the text itself.
func likeLiteral(s string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(s)
}

// withStates adds what became of the proposals that the attempts made, and the sessions that they were made in.
func withStates(ctx context.Context, tx *sql.Tx, rows []record.RecordedAttempt) error {
	if len(rows) == 0 {
		return nil
	}
	ids, numbers := make([]any, len(rows)), make([]any, len(rows))
	for i, r := range rows {
		ids[i], numbers[i] = text(r.RequestID), r.Seq
	}
	states, sessions := map[string]string{}, map[int64]string{}
	err := queryRows(ctx, tx, func(found *sql.Rows) error {
		var id, state string
		err := found.Scan((*text)(&id), (*text)(&state))
		states[id] = state
		return err
	}, "SELECT id, state FROM proposals WHERE id IN ("+placeholders(1, len(ids))+")", ids...)
	if err != nil {
		return err
	}
	err = queryRows(ctx, tx, func(found *sql.Rows) error {
		var seq int64
		var id string
		err := found.Scan(&seq, (*text)(&id))
		sessions[seq] = id
		return err
	}, "SELECT seq, session FROM attempts WHERE session <> '' AND seq IN ("+placeholders(1, len(numbers))+")", numbers...)
	for i, r := range rows {
		rows[i].State, rows[i].Session = record.ProposalState(states[r.RequestID]), sessions[r.Seq]
	}
	return err
}
