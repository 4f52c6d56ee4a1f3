package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/internal/record"
)

// VerifyAuditAfter recomputes the chain behind the head of an earlier report that was OK: that its row is still there with
// its hash, and that every row added since follows. Rows before it are taken as that report found them, so what was altered
// there since is noticed by VerifyAudit alone. The report counts all rows. Errors are those of VerifyAudit.
func (s *Store) VerifyAuditAfter(ctx context.Context, known record.AuditReport) (report record.AuditReport, err error) {
	if known.HeadSeq == 0 || !known.OK() {
		return s.VerifyAudit(ctx, "")
	}
	v, err := newVerifier("")
	if err != nil {
		return record.AuditReport{}, err
	}
	v.report = record.AuditReport{Rows: known.Rows, Head: known.Head, HeadSeq: known.HeadSeq}
	err = s.read(ctx, func(tx *sql.Tx) error {
		var hash string
		err := tx.QueryRowContext(ctx, "SELECT hash FROM audit WHERE seq = $1", known.HeadSeq).Scan(&hash)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if hash != known.Head {
			report = v.report
			report.FirstBad = known.HeadSeq
			report.Problem = fmt.Sprintf("row %d is not what it was when it was verified last: rows were cut off the end, or the chain "+
				"was written anew", known.HeadSeq)
			return nil
		}
		report, err = v.verify(ctx, tx)
		return err
	})
	return report, err
}

// VerifyAuditAfter is Store.VerifyAuditAfter.
func (l *Lazy) VerifyAuditAfter(ctx context.Context, known record.AuditReport) (record.AuditReport, error) {
	return get(ctx, l, func(s *Store) (record.AuditReport, error) { return s.VerifyAuditAfter(ctx, known) })
}
