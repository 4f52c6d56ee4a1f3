package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Audit is the record as evidence.
type Audit struct{ db *database }

// appendAudit adds the attempt to the end of the audit, and returns its number. A missing time is now, and a missing
// policy is that of ctx.
func (d *database) appendAudit(ctx context.Context, tx *sql.Tx, a record.Attempt) (int64, error) {
	if a.Time.IsZero() {
		a.Time = d.now()
	}
	a.Policy = cmp.Or(a.Policy, d.policyOf(ctx))
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
	if ended := endedAs(a); ended != "" {
		if err := countDay(ctx, tx, "ended", row.Time, string(ended)); err != nil {
			return row.Seq, err
		}
	}
	return row.Seq, indexAttempt(ctx, tx, row)
}

// endedAs says how the attempt ended a pull request; "" if it did not.
func endedAs(a record.Attempt) record.Outcome {
	if a.Outcome != record.OutcomeDone {
		return ""
	}
	return map[string]record.Outcome{
		record.ActionPullMerged: record.EndedMerged, record.ActionReviewMerge: record.EndedMerged,
		record.ActionPullClosed: record.EndedClosed, record.ActionPullExpired: record.EndedClosed,
		"review.close": record.EndedClosed,
	}[a.Action]
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
	err = a.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		seq, hash, err = auditHead(ctx, tx)
		return err
	})
	return seq, hash, err
}

// maxRemembered bounds the pages that are made of rows in memory, in rows: those that are asked for again and again.
const maxRemembered = record.MaxAttemptLimit

// Page returns one page. The next one starts Before the last number of this one, or After it if Ascending. Callers must
// not change the slices of a row, which other callers have, too.
func (a *Audit) Page(ctx context.Context, q record.AuditQuery) (rows []record.RecordedAttempt, err error) {
	clauses, args := auditClauses(q)
	err = a.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if q.Ascending || q.Limit > maxRemembered {
			rows, err = a.db.selectAudit(ctx, tx, clauses, args...)
			return err
		}
		found, err := selectRows(ctx, tx, func(rows *sql.Rows, f *foundAttempt) error { return rows.Scan(&f.seq, &f.hash) },
			"SELECT seq, hash FROM audit "+clauses, args...)
		if err != nil {
			return err
		}
		byHash, err := a.db.auditRows(ctx, tx, found)
		for _, f := range found {
			rows = append(rows, byHash[f.hash])
		}
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
		c.add("owner = $%d", textColumn(owner))
		c.add("repo = $%d", textColumn(name))
	}
	c.equals("outcome = $%d", string(q.Outcome))
	c.equals("code = $%d", string(q.Code))
	c.equals("caller = $%d", record.RecordedCaller(q.Caller))
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
	limit := c.limitRows(q.Limit, record.DefaultAuditLimit, record.MaxAuditLimit)
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
		if err := row.decodeColumns(); err != nil {
			return fault.Wrap(err, fault.Internal, "row %d of the audit in %s is damaged; "+
				"run `claudeops audit verify` and restore a backup", row.Seq, d.path())
		}
		row.Provider = d.publicProvider(row.Provider)
		out = append(out, row)
		return nil
	}, "SELECT "+strings.Join(names, ", ")+", hash FROM audit "+clauses, args...)
	return out, err
}

// maxHeads bounds how many heads are read at once.
const maxHeads = 1000

// HeadsAfter returns the heads of the rows after a number, oldest first, at most limit and never more than 1000.
func (a *Audit) HeadsAfter(ctx context.Context, seq int64, limit int) ([]record.Head, error) {
	return selectOf(ctx, a.db, scanHead, `SELECT seq, hash, time_us FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2`,
		seq, min(max(limit, 0), maxHeads))
}

// HashesOf returns the hashes of the rows with the numbers, at most 1000; those that there are.
func (a *Audit) HashesOf(ctx context.Context, seqs []int64) (map[int64]string, error) {
	seqs = seqs[:min(len(seqs), maxHeads)]
	out := make(map[int64]string, len(seqs))
	if len(seqs) == 0 {
		return out, nil
	}
	args := make([]any, len(seqs))
	for i, seq := range seqs {
		args[i] = seq
	}
	heads, err := selectOf(ctx, a.db, scanHead, "SELECT seq, hash, time_us FROM audit WHERE seq IN ("+
		placeholders(1, len(args))+")", args...)
	for _, h := range heads {
		out[h.Seq] = h.Hash
	}
	return out, err
}

func scanHead(rows *sql.Rows, h *record.Head) error {
	return rows.Scan(&h.Seq, &h.Hash, timeColumn(&h.Time))
}

// Exports says how far the heads were exported, for every sink that was ever exported to, by name.
func (a *Audit) Exports(ctx context.Context) ([]record.AuditExport, error) {
	return selectOf(ctx, a.db, func(rows *sql.Rows, e *record.AuditExport) error {
		return rows.Scan((*textColumn)(&e.Sink), &e.Last.Seq, &e.Last.Hash, timeColumn(&e.At), (*textColumn)(&e.Problem),
			timeColumn(&e.ProblemAt))
	}, `SELECT sink, seq, hash, exported_us, problem, problem_us FROM audit_exports ORDER BY sink`)
}

// Export returns the export state of one sink; Last.Seq is 0 if there is none.
func (a *Audit) Export(ctx context.Context, sink string) (record.AuditExport, error) {
	all, err := a.Exports(ctx)
	for _, e := range all {
		if e.Sink == sink {
			return e, err
		}
	}
	return record.AuditExport{Sink: sink}, err
}

// Exported notes that a sink has taken all heads up to last, and that exporting to it works. Of several processes that
// export, the one that is behind takes nothing back.
func (a *Audit) Exported(ctx context.Context, sink string, last record.Head) error {
	return a.db.exec(ctx, `INSERT INTO audit_exports (sink, seq, hash, exported_us) VALUES ($1, $2, $3, $4)
		ON CONFLICT (sink) DO UPDATE SET exported_us = excluded.exported_us, problem = '', problem_us = NULL,
			hash = CASE WHEN excluded.seq >= audit_exports.seq THEN excluded.hash ELSE audit_exports.hash END,
			seq = CASE WHEN excluded.seq >= audit_exports.seq THEN excluded.seq ELSE audit_exports.seq END`,
		textColumn(sink), last.Seq, textColumn(last.Hash), micros(a.db.now()))
}

// ExportFailed notes why exporting to a sink failed. What it has taken stays as it is.
func (a *Audit) ExportFailed(ctx context.Context, sink, problem string) error {
	return a.db.exec(ctx, `INSERT INTO audit_exports (sink, seq, hash, exported_us, problem, problem_us) VALUES ($1, 0, '', NULL, $2, $3)
		ON CONFLICT (sink) DO UPDATE SET problem = excluded.problem,
			problem_us = CASE WHEN audit_exports.problem = '' THEN excluded.problem_us ELSE audit_exports.problem_us END`,
		textColumn(sink), textColumn(cutText(problem, maxNoticeError)), micros(a.db.now()))
}

// Bounds of the rows of the audit that are kept in memory, in rows and in bytes of what they hold. Beyond them, all are
// given up.
const (
	maxRowsInMemory     = 1000
	maxRowBytesInMemory = 4 << 20
)

// rowMemory caches decoded rows of the audit in memory. It finds them by their hash, which covers all that they hold
// and all rows before, so a cached row equals the stored one. Callers must not change the slices of a row.
type rowMemory struct {
	mu    sync.Mutex
	rows  map[string]record.RecordedAttempt
	bytes int
}

func (m *rowMemory) findByHash(hash string) (record.RecordedAttempt, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, found := m.rows[hash]
	return row, found
}

func (m *rowMemory) cacheRow(row auditRow) {
	size := 0
	for _, c := range row.columns {
		if s, ok := c.value.(string); ok {
			size += len(s)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil || len(m.rows) >= maxRowsInMemory || m.bytes+size > maxRowBytesInMemory {
		m.rows, m.bytes = map[string]record.RecordedAttempt{}, 0
	}
	if _, has := m.rows[row.Hash]; !has && size <= maxRowBytesInMemory {
		m.rows[row.Hash], m.bytes = row.RecordedAttempt, m.bytes+size
	}
}

// auditRows returns the rows that were found, by their hashes. Those that are not in memory are read.
func (d *database) auditRows(ctx context.Context, tx *sql.Tx, found []foundAttempt) (map[string]record.RecordedAttempt,
	error) {
	rows := make(map[string]record.RecordedAttempt, len(found))
	var missing []any
	for _, f := range found {
		row, known := d.rows.findByHash(f.hash)
		if !known {
			missing = append(missing, f.seq)
			continue
		}
		rows[f.hash] = row
	}
	if len(missing) == 0 {
		return rows, nil
	}
	read, err := d.selectAuditRows(ctx, tx, "WHERE seq IN ("+placeholders(1, len(missing))+")", missing...)
	for _, row := range read {
		rows[row.Hash] = row.RecordedAttempt
		d.rows.cacheRow(row)
	}
	return rows, err
}

// Verify recomputes the chain from the first row to the last, in constant memory. With expectHead, a hash that
// Head once gave, it also reports whether that row is still there: rows after it are fine, but without it rows were cut
// off or the chain was written anew. It also reads the whole database, whose structure must be sound. The error is for
// an audit that cannot be read; what is wrong with it is in the report. A malformed expectHead is invalid_argument.
func (a *Audit) Verify(ctx context.Context, expectHead string) (record.AuditReport, error) {
	v, err := newVerifier(expectHead)
	if err != nil {
		return record.AuditReport{}, err
	}
	var report record.AuditReport
	err = a.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		report, err = v.verifyRows(ctx, tx)
		return err
	})
	if err != nil || !report.OK() {
		return report, err
	}
	finding, err := a.db.checkStructure(ctx)
	if finding != "" {
		report.Problem = fmt.Sprintf("the chain is whole, but the database %s is damaged (%s); restore a backup",
			a.db.path(), finding)
	}
	return report, err
}

func (d *database) checkStructure(ctx context.Context) (finding string, err error) {
	c, err := d.ensureConnected(ctx)
	if err != nil {
		return "", err
	}
	finding, err = c.checkStructure(ctx)
	return finding, c.asFault(ctx, err)
}

// VerifyAfter recomputes the chain behind the head of an earlier report that was OK: that its row is still there with
// its hash, and that every row added since follows. Rows before it are taken as that report found them, so what was
// altered there since is noticed by Verify alone, as is a damaged structure. The report counts all rows. Errors are
// those of Verify.
func (a *Audit) VerifyAfter(ctx context.Context, known record.AuditReport) (report record.AuditReport, err error) {
	if known.HeadSeq == 0 || !known.OK() {
		return a.Verify(ctx, "")
	}
	v, err := newVerifier("")
	if err != nil {
		return record.AuditReport{}, err
	}
	v.report = record.AuditReport{Rows: known.Rows, Head: known.Head, HeadSeq: known.HeadSeq}
	err = a.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
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
		report, err = v.verifyRows(ctx, tx)
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

// verifyRows reads the rows from where the verifier stands to the end.
func (v *verifier) verifyRows(ctx context.Context, tx *sql.Tx) (record.AuditReport, error) {
	if err := v.verifyAll(ctx, tx); err != nil {
		return record.AuditReport{}, err
	}
	if v.report.Problem == "" && !v.found {
		v.report.Problem = "the chain is whole but does not contain the expected head: " +
			"rows were cut off its end, or it was written anew"
	}
	return v.report, nil
}

// verifyAll reads the rows as the bytes that the database gives, so that nothing in them can stop it.
func (v *verifier) verifyAll(ctx context.Context, tx *sql.Tx) (err error) {
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
		v.checkRow(string(values[0]), string(values[1]), string(values[len(names)]), canonical)
	}
	return rows.Err()
}

// checkRow checks one row against the one before.
func (v *verifier) checkRow(seq, prev, hash string, canonical []byte) {
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
