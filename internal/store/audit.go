package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// appendAudit adds the attempt to the end of the audit, and returns its number. A missing time is now.
func (s *Store) appendAudit(ctx context.Context, tx *sql.Tx, a record.Attempt) (int64, error) {
	if a.Time.IsZero() {
		a.Time = s.opts.Now()
	}
	seq, prev, err := auditHead(ctx, tx)
	if err != nil {
		return 0, err
	}
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
	return row.Seq, indexAttempt(ctx, tx, row)
}

func auditHead(ctx context.Context, tx *sql.Tx) (seq int64, hash string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1`).Scan(&seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, GenesisHash, nil
	}
	return seq, hash, err
}

// Head returns number and hash of the last row of the audit: 0 and GenesisHash when it is empty. Kept somewhere else,
// the hash proves to VerifyAudit that nothing was cut off.
func (s *Store) Head(ctx context.Context) (seq int64, hash string, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		seq, hash, err = auditHead(ctx, tx)
		return err
	})
	return seq, hash, err
}

// Audit returns one page. The next one starts Before the last number of this one, or After it if Ascending.
func (s *Store) Audit(ctx context.Context, q record.AuditQuery) (rows []AuditRow, err error) {
	clauses, args := auditClauses(q)
	err = s.read(ctx, func(tx *sql.Tx) error {
		rows, err = s.selectAudit(ctx, tx, clauses, args...)
		return err
	})
	return rows, err
}

// AuditEntry returns the row with the number, or else the newest with the request id, that ref is; not_found if there
// is none.
func (s *Store) AuditEntry(ctx context.Context, ref string) (AuditRow, error) {
	if ref == "" {
		return AuditRow{}, fault.New(fault.NotFound, "nothing names a row of the audit; give its number or a request id")
	}
	q := record.AuditQuery{RequestID: ref, Limit: 1}
	seq, err := strconv.ParseInt(ref, 10, 64)
	isNumber := err == nil && seq > 0
	if isNumber {
		q = record.AuditQuery{After: seq - 1, Ascending: true, Limit: 1}
	}
	rows, err := s.Audit(ctx, q)
	if err != nil {
		return AuditRow{}, err
	}
	if len(rows) == 0 || isNumber && rows[0].Seq != seq {
		return AuditRow{}, fault.New(fault.NotFound, "the audit has no row with the number or request id %q", ref)
	}
	return rows[0], nil
}

func auditClauses(q record.AuditQuery) (clauses string, args []any) {
	var conditions []string
	where := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf("%s $%d", condition, len(args)))
	}
	where("seq >", q.After)
	if q.Before != 0 {
		where("seq <", q.Before)
	}
	if q.Repo != "" {
		owner, name, _ := strings.Cut(q.Repo, "/")
		where("owner =", text(owner))
		where("repo =", text(name))
	}
	equals := func(condition, value string) {
		if value != "" {
			where(condition, text(bound(value, maxWord)))
		}
	}
	equals("outcome =", string(q.Outcome))
	equals("code =", string(q.Code))
	equals("caller =", q.Caller)
	equals("request_id =", q.RequestID)
	if q.Pull != "" {
		args = append(args, text(bound(string(q.Pull), maxWord)))
		conditions = append(conditions, fmt.Sprintf("request_id IN (SELECT proposal_id FROM pulls WHERE state = $%d)", len(args)))
	}
	if !q.Since.IsZero() {
		where("time_us >=", micros(q.Since))
	}
	if !q.Until.IsZero() {
		where("time_us <", micros(q.Until))
	}
	order := "DESC"
	if q.Ascending {
		order = "ASC"
	}
	limit := q.Limit
	if limit <= 0 {
		limit = record.DefaultAuditLimit
	}
	args = append(args, min(limit, record.MaxAuditLimit))
	return fmt.Sprintf("WHERE %s ORDER BY seq %s LIMIT $%d", strings.Join(conditions, " AND "), order, len(args)), args
}

func (s *Store) selectAudit(ctx context.Context, tx *sql.Tx, clauses string, args ...any) (out []AuditRow, err error) {
	names := auditColumnNames()
	rows, err := tx.QueryContext(ctx, "SELECT "+strings.Join(names, ", ")+", hash FROM audit "+clauses, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row := AuditRow{columns: make([]auditColumn, len(names))}
		dest := make([]any, 0, len(names)+1)
		for i, name := range names {
			row.columns[i].name = name
			dest = append(dest, &row.columns[i].value)
		}
		if err := rows.Scan(append(dest, &row.Hash)...); err != nil {
			return nil, err
		}
		if err := row.decode(); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "row %d of the audit in %s is damaged; "+
				"run `claudeops audit verify` and restore a backup", row.Seq, s.path)
		}
		out = append(out, row)
	}
	return out, rows.Err()
}
