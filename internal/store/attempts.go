package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

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
	}
	return nil
}

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
	selected, args := attemptClauses(q)
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

func attemptClauses(q record.AttemptQuery) (query string, args []any) {
	from, order, c := "attempts", "attempts.seq", conditions{texts: []string{"1 = 1"}}
	if q.Gate != "" { // its index has the rows in their order, and so comes first
		from, order, c.texts[0] = "attempt_gates g CROSS JOIN attempts", "g.seq", "attempts.seq = g.seq"
	}
	// A search looks at every row in the worst case. In their order on disk that takes a third of the time that it takes
	// through another index, which an expression instead of a column rules out.
	plain := ""
	if q.Search != "" {
		plain = " || ''"
	}
	if q.Before != 0 {
		c.add(order+" < $%d", q.Before)
	}
	direction := "DESC"
	if q.After != 0 {
		direction = "ASC"
		c.add(order+" > $%d", q.After)
	}
	if q.Repo != "" {
		c.add("repo"+plain+" = $%d", text(lowerASCII(bound(q.Repo, 2*maxName))))
	}
	c.equals("provider"+plain+" = $%d", q.Provider)
	c.equals("door"+plain+" = $%d", string(q.Door))
	c.equals("caller"+plain+" = $%d", q.Caller)
	c.equals("session = $%d", q.Session)
	c.equals("outcome"+plain+" = $%d", string(q.Outcome))
	c.equals("code"+plain+" = $%d", string(q.Code))
	// The plus keeps the databases from sorting what an index on the time has found: the rows come almost in order of time.
	if !q.Since.IsZero() {
		c.add("+time_us >= $%d", micros(q.Since))
	}
	if !q.Until.IsZero() {
		c.add("+time_us < $%d", micros(q.Until))
	}
	c.equals("g.gate = $%d", string(q.Gate))
	c.equals("request_id"+plain+" IN (SELECT proposal_id FROM pulls WHERE state = $%d)", string(q.Pull))
	if q.Search != "" {
		c.add("search LIKE $%d ESCAPE '!'", "%"+likeLiteral(lowerASCII(escape(bound(q.Search, maxWord))))+"%")
	}
	limit := c.page(q.Limit, record.DefaultAttemptLimit, record.MaxAttemptLimit)
	return fmt.Sprintf("SELECT attempts.seq FROM %s WHERE %s ORDER BY %s %s LIMIT $%d", from, c.where(), order, direction, limit), c.args
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
