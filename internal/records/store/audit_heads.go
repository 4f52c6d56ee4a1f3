package store

import (
	"context"
	"database/sql"

	"github.com/claudeops/claudeops/internal/records/record"
)

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

func scanHead(rows *sql.Rows, h *record.Head) error { return rows.Scan(&h.Seq, &h.Hash, at(&h.Time)) }

// Exports says how far the heads were exported, for every sink that was ever exported to, by name.
func (a *Audit) Exports(ctx context.Context) ([]record.AuditExport, error) {
	return selectOf(ctx, a.db, func(rows *sql.Rows, e *record.AuditExport) error {
		return rows.Scan((*text)(&e.Sink), &e.Last.Seq, &e.Last.Hash, at(&e.At), (*text)(&e.Problem), at(&e.ProblemAt))
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
		text(sink), last.Seq, text(last.Hash), micros(a.db.now()))
}

// ExportFailed notes why exporting to a sink failed. What it has taken stays as it is.
func (a *Audit) ExportFailed(ctx context.Context, sink, problem string) error {
	return a.db.exec(ctx, `INSERT INTO audit_exports (sink, seq, hash, exported_us, problem, problem_us) VALUES ($1, 0, '', NULL, $2, $3)
		ON CONFLICT (sink) DO UPDATE SET problem = excluded.problem,
			problem_us = CASE WHEN audit_exports.problem = '' THEN excluded.problem_us ELSE audit_exports.problem_us END`,
		text(sink), text(cutText(problem, maxNoticeError)), micros(a.db.now()))
}
