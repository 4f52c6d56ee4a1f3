package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Audit is the record as evidence.
type Audit struct{ db *database }

// appendAudit adds the attempt to the end of the audit, and returns its number. A missing time is now.
func (d *database) appendAudit(ctx context.Context, tx *sql.Tx, a record.Attempt) (int64, error) {
	if a.Time.IsZero() {
		a.Time = d.now()
	}
	seq, prev, err := auditHead(ctx, tx)
	if err != nil {
		return 0, err
	}
	a.Provider = d.stored(a.Provider)
	row := newAuditRow(seq+1, prev, a)
	names := make([]string, len(row.columns))
	args := make([]any, len(row.columns))
	for i, c := range row.columns {
		names[i], args[i] = c.name, c.value
	}
	insert := "INSERT INTO audit (" + strings.Join(names, ", ") + ", hash) VALUES (" + placeholders(1, len(args)+1) + ")"
	if _, err = tx.ExecContext(ctx, insert, append(args, row.Hash)...); err != nil {
		return row.Seq, err
	}
	d.appending.Store(tx, struct{}{})
	return row.Seq, indexAttempt(ctx, tx, row)
}

// appendAll appends rows to the audit.
func (d *database) appendAll(ctx context.Context, tx *sql.Tx, rows []record.Attempt) error {
	for _, row := range rows {
		if _, err := d.appendAudit(ctx, tx, row); err != nil {
			return err
		}
	}
	return nil
}

func auditHead(ctx context.Context, tx *sql.Tx) (seq int64, hash string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1`).Scan(&seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, genesisHash, nil
	}
	return seq, hash, err
}

// Head returns number and hash of the last row of the audit: 0 and genesisHash when it is empty. Kept somewhere else,
// the hash proves to Verify that nothing was cut off.
func (a *Audit) Head(ctx context.Context) (seq int64, hash string, err error) {
	err = a.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		seq, hash, err = auditHead(ctx, tx)
		return err
	})
	return seq, hash, err
}

// Page returns one page. The next one starts Before the last number of this one, or After it if Ascending.
func (a *Audit) Page(ctx context.Context, q record.AuditQuery) (rows []record.RecordedAttempt, err error) {
	clauses, args := auditClauses(q)
	err = a.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err = a.db.selectAudit(ctx, tx, clauses, args...)
		return err
	})
	return rows, err
}

// Entry returns the row with the number, or else the newest with the request id, that ref is; not_found if there
// is none.
func (a *Audit) Entry(ctx context.Context, ref string) (record.RecordedAttempt, error) {
	if ref == "" {
		return record.RecordedAttempt{}, fault.New(fault.NotFound,
			"nothing names a row of the audit; give its number or a request id")
	}
	q := record.AuditQuery{RequestID: ref, Limit: 1}
	seq, err := strconv.ParseInt(ref, 10, 64)
	isNumber := err == nil && seq > 0
	if isNumber {
		q = record.AuditQuery{After: seq - 1, Ascending: true, Limit: 1}
	}
	rows, err := a.Page(ctx, q)
	if err != nil {
		return record.RecordedAttempt{}, err
	}
	if len(rows) == 0 || isNumber && rows[0].Seq != seq {
		return record.RecordedAttempt{}, fault.New(fault.NotFound, "the audit has no row with the number or request id %q",
			ref)
	}
	return rows[0], nil
}

func auditClauses(q record.AuditQuery) (clauses string, args []any) {
	var c conditions
	c.add("seq > $%d", q.After)
	if q.Before != 0 {
		c.add("seq < $%d", q.Before)
	}
	if q.Repo != "" {
		owner, name, _ := strings.Cut(q.Repo, "/")
		c.add("owner = $%d", text(owner))
		c.add("repo = $%d", text(name))
	}
	c.equals("outcome = $%d", string(q.Outcome))
	c.equals("code = $%d", string(q.Code))
	c.equals("caller = $%d", q.Caller)
	c.equals("request_id = $%d", q.RequestID)
	c.equals("request_id IN (SELECT proposal_id FROM pulls WHERE state = $%d)", string(q.Pull))
	c.equals("door = $%d", string(q.Door))
	if q.Action != "" {
		column := "action"
		if strings.HasPrefix(q.Action, record.ActionCreate) {
			column += " || ''" // most rows are such ones: an index of them would have to be sorted
		}
		c.equals(column+" >= $%d", q.Action)
		c.equals(column+" < $%d", q.Action+"\x7f")
	}
	if q.Number != 0 {
		c.add("(seq = $%[1]d OR pr_number > 0 AND pr_number = $%[1]d)", q.Number)
	}
	if !q.Since.IsZero() {
		c.add("time_us >= $%d", micros(q.Since))
	}
	if !q.Until.IsZero() {
		c.add("time_us < $%d", micros(q.Until))
	}
	order := "DESC"
	if q.Ascending {
		order = "ASC"
	}
	limit := c.page(q.Limit, record.DefaultAuditLimit, record.MaxAuditLimit)
	return fmt.Sprintf("WHERE %s ORDER BY seq %s LIMIT $%d", c.where(), order, limit), c.args
}

// Callers lists who is in the audit, by name, at most limit. It looks each of them up, and reads no other row.
func (a *Audit) Callers(ctx context.Context, limit int) ([]string, error) {
	return selectOf(ctx, a.db, scanText, `WITH RECURSIVE named (caller) AS (SELECT MIN(caller) FROM audit
			UNION ALL SELECT (SELECT MIN(caller) FROM audit WHERE caller > named.caller) FROM named WHERE named.caller IS NOT NULL)
		SELECT caller FROM named WHERE caller IS NOT NULL LIMIT $1`, limit)
}

func (d *database) selectAudit(
	ctx context.Context, tx *sql.Tx, clauses string, args ...any,
) (out []record.RecordedAttempt, err error) {
	rows, err := d.selectAuditRows(ctx, tx, clauses, args...)
	for _, row := range rows {
		out = append(out, row.RecordedAttempt)
	}
	return out, err
}

func (d *database) selectAuditRows(ctx context.Context, tx *sql.Tx, clauses string, args ...any) (out []auditRow,
	err error) {
	names := auditColumnNames()
	err = queryRows(ctx, tx, func(rows *sql.Rows) error {
		row := auditRow{columns: make([]auditColumn, len(names))}
		dest := make([]any, 0, len(names)+1)
		for i, name := range names {
			row.columns[i].name = name
			dest = append(dest, &row.columns[i].value)
		}
		if err := rows.Scan(append(dest, &row.Hash)...); err != nil {
			return err
		}
		if err := row.decode(); err != nil {
			return fault.Wrap(err, fault.Internal, "row %d of the audit in %s is damaged; "+
				"run `claudeops audit verify` and restore a backup", row.Seq, d.path())
		}
		row.Provider = d.shown(row.Provider)
		out = append(out, row)
		return nil
	}, "SELECT "+strings.Join(names, ", ")+", hash FROM audit "+clauses, args...)
	return out, err
}
