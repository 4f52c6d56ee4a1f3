package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Verify recomputes the chain from the first row to the last, in constant memory. With expectHead, a hash that
// Head once gave, it also reports whether that row is still there: rows after it are fine, but without it rows were cut
// off or the chain was written anew. The error is for an audit that cannot be read; what is wrong with it is in the
// report. A malformed expectHead is invalid_argument.
func (a *Audit) Verify(ctx context.Context, expectHead string) (record.AuditReport, error) {
	v, err := newVerifier(expectHead)
	if err != nil {
		return record.AuditReport{}, err
	}
	var report record.AuditReport
	err = a.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		report, err = v.verify(ctx, tx)
		return err
	})
	return report, err
}

// VerifyAfter recomputes the chain behind the head of an earlier report that was OK: that its row is still there with
// its hash, and that every row added since follows. Rows before it are taken as that report found them, so what was
// altered there since is noticed by Verify alone. The report counts all rows. Errors are those of Verify.
func (a *Audit) VerifyAfter(ctx context.Context, known record.AuditReport) (report record.AuditReport, err error) {
	if known.HeadSeq == 0 || !known.OK() {
		return a.Verify(ctx, "")
	}
	v, err := newVerifier("")
	if err != nil {
		return record.AuditReport{}, err
	}
	v.report = record.AuditReport{Rows: known.Rows, Head: known.Head, HeadSeq: known.HeadSeq}
	err = a.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var hash string
		err := tx.QueryRowContext(ctx, "SELECT hash FROM audit WHERE seq = $1", known.HeadSeq).Scan(&hash)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if hash != known.Head {
			report = v.report
			report.FirstBad = known.HeadSeq
			report.Problem = fmt.Sprintf(
				"row %d is not what it was when it was verified last: rows were cut off the end, or the chain "+
					"was written anew", known.HeadSeq)
			return nil
		}
		report, err = v.verify(ctx, tx)
		return err
	})
	return report, err
}

type verifier struct {
	expect string
	found  bool
	report record.AuditReport
}

// newVerifier begins with the first row. A malformed head is invalid_argument.
func newVerifier(expectHead string) (*verifier, error) {
	expectHead = strings.ToLower(strings.TrimSpace(expectHead))
	_, err := hex.DecodeString(expectHead)
	if expectHead != "" && (err != nil || len(expectHead) != len(genesisHash)) {
		return nil, fault.New(fault.InvalidArgument,
			"the expected head is not a hash, which has 64 hexadecimal digits; copy the whole of it")
	}
	return &verifier{
		expect: expectHead, found: expectHead == "" || expectHead == genesisHash,
		report: record.AuditReport{Head: genesisHash},
	}, nil
}

// verify reads the rows from where the verifier stands to the end.
func (v *verifier) verify(ctx context.Context, tx *sql.Tx) (record.AuditReport, error) {
	if err := v.run(ctx, tx); err != nil {
		return record.AuditReport{}, err
	}
	if v.report.Problem == "" && !v.found {
		v.report.Problem = "the chain is whole but does not contain the expected head: " +
			"rows were cut off its end, or it was written anew"
	}
	return v.report, nil
}

// run reads the rows as the bytes that the database gives, so that nothing in them can stop it.
func (v *verifier) run(ctx context.Context, tx *sql.Tx) (err error) {
	names := auditColumnNames()
	from, args := "", []any(nil)
	if v.report.HeadSeq > 0 {
		from, args = " WHERE seq > $1", []any{v.report.HeadSeq}
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+strings.Join(names, ", ")+", hash FROM audit"+from+" ORDER BY seq",
		args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]sql.RawBytes, len(names)+1)
	dest := make([]any, len(values))
	for i := range values {
		dest[i] = &values[i]
	}
	var canonical []byte
	for v.report.Problem == "" && rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		canonical = append(canonical[:0], auditHeader...)
		for i, name := range names {
			canonical = appendColumn(canonical, name, []byte(values[i]))
		}
		v.row(string(values[0]), string(values[1]), string(values[len(names)]), canonical)
	}
	return rows.Err()
}

// row checks one row against the one before.
func (v *verifier) row(seq, prev, hash string, canonical []byte) {
	want := v.report.HeadSeq + 1
	bad := func(format string, args ...any) {
		v.report.FirstBad, v.report.Problem = want, fmt.Sprintf(format, args...)
	}
	switch {
	case seq != fmt.Sprint(want):
		bad("row %d is missing: row %q follows row %d", want, seq, want-1)
	case prev != v.report.Head:
		bad("row %d does not follow row %d: it carries another hash than that row has", want, want-1)
	case hash != hashOf(canonical):
		bad("row %d was altered: its hash is not that of its content", want)
	default:
		v.report.Rows, v.report.HeadSeq, v.report.Head = v.report.Rows+1, want, hash
		if hash == v.expect {
			v.found, v.report.ExpectedSeq = true, want
		}
	}
}
