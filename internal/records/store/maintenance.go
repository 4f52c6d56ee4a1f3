package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// partialSuffix is added to the name of a backup that is being written.
const partialSuffix = ".partial"

// Backup makes a new folder, for its owner alone, that can be used as a state folder: with a copy of the database as it
// is at one moment, while others go on reading and writing, and copies of those of the files that are in the state
// folder. The copy of the database is opened and its audit verified before the folder gets its name. With PostgreSQL
// the database is not copied, and the report is empty. copied are the names of the files, the database aside.
//
// Errors: conflict if the folder, or one that a killed backup has left beside it, is there; not_found if the folder
// above it is not.
func (s *Store) Backup(ctx context.Context, folder string, files ...string) (report record.AuditReport, copied []string,
	err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return report, nil, unwritten(err)
	}
	if _, err := os.Lstat(folder); err == nil {
		return report, nil, fault.New(fault.Conflict, "%s is there already; name a folder that does not exist yet", folder)
	}
	var source *sqliteEngine
	if s.db.opts.DatabaseURL == "" {
		c, err := s.db.ensureConnected(ctx) // first, so that nothing is made where there is nothing to copy
		if err != nil {
			return report, nil, err
		}
		source, _ = c.engine.(*sqliteEngine)
	}
	partial := folder + partialSuffix
	if err := os.Mkdir(partial, dirMode); errors.Is(err, fs.ErrExist) {
		return report, nil, fault.New(fault.Conflict, "%s is there: another backup is being written, or was killed; "+
			"remove it if none is, it holds secrets", partial)
	} else if err != nil {
		return report, nil, unwritten(err)
	}
	defer func() { _ = os.RemoveAll(partial) }() // without effect after the renaming
	if source != nil {
		if report, err = source.copyTo(ctx, partial); err != nil {
			return report, nil, err
		}
	}
	// After the database, so that the key of every mark is there that the copy knows of.
	if copied, err = copyFiles(s.db.dir, partial, append(files, kindName)); err != nil {
		return report, nil, unwritten(err)
	}
	return report, copied, unwritten(errors.Join(syncDir(partial), os.Rename(partial, folder),
		syncDir(filepath.Dir(folder))))
}

// copyTo writes the database to a folder, and reads what was written.
func (e *sqliteEngine) copyTo(ctx context.Context, folder string) (report record.AuditReport, err error) {
	if err := e.checkNotReplaced(); err != nil {
		return report, err
	}
	path := filepath.Join(folder, databaseName)
	if err := createFile(path); err != nil {
		return report, unwritten(err)
	}
	if err := vacuumInto(ctx, e.path, path); err != nil {
		if causeOf(err) == causeFull {
			return report, fault.Wrap(err, fault.Internal, "the disk that holds %s is full; free some space", folder)
		}
		return report, e.asFault(ctx, err)
	}
	written, err := Open(ctx, folder, Options{MustExist: true})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, written.Close(), unwritten(syncFile(path))) }()
	if err := written.Check(ctx); err != nil {
		return report, err
	}
	report, err = written.Audit.Verify(ctx, "")
	if err == nil && !report.OK() {
		err = fault.New(fault.Internal, "the audit is not whole, so no backup was made: %s; run `claudeops audit verify`",
			report.Problem)
	}
	return report, err
}

// vacuumInto copies a database to an empty file, in one read transaction. It has a connection of its own: one that only
// reads may not vacuum, and writers are not to wait for this one.
func vacuumInto(ctx context.Context, from, to string) error {
	db, err := openPool(from, defaultBusyTimeout, true)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", to)
	return errors.Join(err, db.Close())
}

// copyFiles copies those of the files that exist.
func copyFiles(from, to string, names []string) (copied []string, err error) {
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(from, name)) // #nosec G304: names of ours
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		path := filepath.Join(to, name)
		if err == nil {
			err = errors.Join(os.WriteFile(path, content, fileMode), syncFile(path))
		}
		if err != nil {
			return copied, err
		}
		copied = append(copied, name)
	}
	return copied, nil
}

// syncFile flushes a file to disk, so that it survives a loss of power. The file must not be open elsewhere.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // #nosec G304: a file of ours
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// unwritten returns the failure to write a backup: not_found or misconfigured if the folder was badly chosen.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	code := fault.Internal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = fault.NotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
		code = fault.Misconfigured
	}
	reason := err
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		reason = pathErr.Err
	}
	return fault.Wrap(err, code, "the backup cannot be written: %s", reason)
}

// Retention removes what is old. The audit is never touched, nor is data that a decision may still need: who proposed
// what, to which paths, with which digest, and the result. So a change that was opened once is recognised however old
// it is.
type Retention struct{ db *database }

// pruneBatch is the number of rows that one transaction removes, so that writers do not wait for long.
const pruneBatch = 200

// pruneRule is one kind of rows that may go. key are the columns that tell them apart; rows are those that fulfil the
// condition, in which $1 is the time before which they are old. clear removes one batch; nil deletes the rows.
type pruneRule struct {
	kind, table, key, condition string

	clear func(ctx context.Context, tx *sql.Tx, rule pruneRule, before, now time.Time) (int64, error)
}

// KindSessionOutput is the kind of what agents said and did in sessions.
const KindSessionOutput = "session_output"

// rulesOf are the rules of the kinds; of all, if none is named.
func rulesOf(kinds []string) []pruneRule {
	return slices.DeleteFunc(pruneRules(), func(r pruneRule) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, r.kind)
	})
}

// pruneRules are all kinds, in the order in which they are removed. A table that others add is one more entry.
func pruneRules() []pruneRule {
	return []pruneRule{
		{kind: "proposals", table: "proposals", key: "id", condition: settledLongAgo, clear: emptyProposals},
		{kind: "notices", table: "notices", key: "id", condition: "state IN ('delivered', 'given_up') AND settled_us < $1"},
		{kind: "idempotency_keys", table: "idempotency_keys", key: "principal, key", condition: "created_us < $1"},
		{kind: "web_sessions", table: "web_sessions", key: "hash", condition: "seen_us < $1"},
		{kind: KindSessionOutput, table: "agent_session_events", key: "session, seq", condition: outputOfEnded},
		{kind: "journal", table: "agent_journal", key: "session, seq", condition: "time_us < $1"},
		{kind: "refused_changes", table: "refused_changes", key: "request_id", condition: "created_us < $1"},
		{kind: "script_runs", table: "script_runs", key: "id", condition: "settled = 1 AND started_us < $1"},
	}
}

// settledLongAgo are the proposals of which contents and text may go: ended, not held, and not what a person may still
// review in a local repository.
const settledLongAgo = `pruned_us IS NULL AND created_us < $1 AND state IN ('opened', 'failed', 'dry_run')
	AND NOT EXISTS (SELECT 1 FROM reservations r WHERE r.proposal_id = proposals.id)
	AND NOT EXISTS (SELECT 1 FROM local_prs l WHERE 'local:' || l.repo = proposals.provider || ':' || proposals.owner || '/' || proposals.repo
		AND l.number = proposals.pr_number AND l.state = 'open')`

// outputOfEnded selects the output and actions of agents in sessions that have ended. The sessions' records stay.
const outputOfEnded = "time_us < $1 AND session IN (SELECT id FROM agent_sessions WHERE state <> 'running')"

// CountPrunable reports what Prune would remove.
func (r *Retention) CountPrunable(ctx context.Context, before time.Time, kinds ...string) (out []record.Pruned,
	err error) {
	err = r.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, rule := range rulesOf(kinds) {
			p := record.Pruned{Kind: rule.kind}
			query := "SELECT COUNT(*) FROM " + rule.table + " WHERE " + rule.condition
			if err := tx.QueryRowContext(ctx, query, micros(before)).Scan(&p.Rows); err != nil {
				return err
			}
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

// Prune removes what is older than before: bodies and file contents of settled proposals, whose rows stay; notices that
// were settled; answers under idempotency keys; sessions of browsers; the output of agents' sessions, and what they
// noted; what refused attempts wanted; runs of scripts; where kinds are named, those alone. If anything went, row
// becomes a row of the audit; row says what it is about from the counts. Others may write meanwhile. What was removed
// before an error stays removed, and is in the answer.
func (r *Retention) Prune(
	ctx context.Context, before time.Time, row func([]record.Pruned) record.Attempt, kinds ...string,
) (out []record.Pruned, err error) {
	removed := int64(0)
	for _, rule := range rulesOf(kinds) {
		p := record.Pruned{Kind: rule.kind}
		for n := int64(pruneBatch); n == pruneBatch && err == nil; p.Rows += n {
			n, err = r.pruneBatch(ctx, rule, before)
		}
		removed += p.Rows
		out = append(out, p)
	}
	if removed > 0 {
		if recorded := r.db.writeTx(context.WithoutCancel(ctx),
			func(ctx context.Context, tx *sql.Tx) error {
				return r.db.appendAll(ctx, tx, []record.Attempt{row(out)})
			}); err == nil {
			err = recorded
		}
		if err == nil {
			err = r.shrink(ctx)
		}
	}
	return out, err
}

// shrinkBatch is how many pages of SQLite's file one transaction gives back to the disk.
const shrinkBatch = 1000

// shrink gives the room that is free in SQLite's file back to the disk. PostgreSQL does so by itself.
func (r *Retention) shrink(ctx context.Context) error {
	c, err := r.db.ensureConnected(ctx)
	if err != nil {
		return err
	}
	if _, is := c.engine.(*sqliteEngine); !is {
		return nil
	}
	for before := int64(-1); ; {
		var free int64
		err := r.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			ignore := func(*sql.Rows) error { return nil }
			if err := queryRows(ctx, tx, ignore, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", shrinkBatch)); err != nil {
				return err
			}
			return tx.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free)
		})
		if err != nil || free == 0 || free == before { // a database of an older version gives nothing back
			return err
		}
		before = free
	}
}

func (r *Retention) pruneBatch(ctx context.Context, rule pruneRule, before time.Time) (n int64, err error) {
	err = r.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if rule.clear != nil {
			n, err = rule.clear(ctx, tx, rule, before, r.db.now())
			return err
		}
		result, err := tx.ExecContext(ctx, "DELETE FROM "+rule.table+" WHERE ("+rule.key+") IN (SELECT "+rule.key+" FROM "+
			rule.table+
			" WHERE "+rule.condition+" LIMIT $2)", micros(before), pruneBatch)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// emptyProposals removes body and contents; the row, the paths and the digest stay.
func emptyProposals(ctx context.Context, tx *sql.Tx, rule pruneRule, before, now time.Time) (int64, error) {
	chosen := " IN (SELECT id FROM proposals WHERE " + rule.condition + " ORDER BY created_us, id LIMIT $3)"
	_, err := tx.ExecContext(ctx, "UPDATE proposal_files SET content = $2 WHERE proposal_id"+chosen, micros(before),
		[]byte{}, pruneBatch)
	if err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, "UPDATE proposals SET body = '', answers = '', facts = '', pruned_us = $2 WHERE id"+chosen,
		micros(before), micros(now), pruneBatch)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
