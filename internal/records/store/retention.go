package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

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
	err = r.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
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
		if recorded := r.db.write(context.WithoutCancel(ctx),
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
	c, err := r.db.open(ctx)
	if err != nil {
		return err
	}
	if _, is := c.engine.(*sqliteEngine); !is {
		return nil
	}
	for before := int64(-1); ; {
		var free int64
		err := r.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
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
	err = r.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
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
	result, err := tx.ExecContext(ctx, "UPDATE proposals SET body = '', answers = '', pruned_us = $2 WHERE id"+chosen,
		micros(before), micros(now), pruneBatch)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
