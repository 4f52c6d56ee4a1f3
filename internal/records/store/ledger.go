package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Ledger keeps proposals while they are worked on. Each has a lock of its own, by which other processes know whether it
// still is.
type Ledger struct {
	db      *database
	held    *heldLocks
	repeats *repeats
}

// Reserve implements prflow.Ledger. The state recorded is StateReserved and the time that of the reservation, whatever
// p says.
func (l *Ledger) Reserve(
	ctx context.Context, p record.Proposal, claim record.Claim,
) (taken *record.Proposal, err error) {
	p.State, p.Provider = record.StateReserved, l.db.stored(p.Provider)
	var holders []proposalRow
	err = l.held.acquireAndRecord(ctx, p.ID, func(lock string) (bool, error) {
		err := l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if err := l.db.checkPaused(ctx, tx, p.Owner, p.Repo); err != nil {
				return err
			}
			holder, err := findHolder(ctx, tx, p, claim.Seen)
			if err != nil {
				return err
			}
			if holder != "" {
				holders, err = selectProposals(ctx, tx, "WHERE id = $1", textColumn(holder))
				return err
			}
			if err := l.db.admit(ctx, tx, p, claim); err != nil {
				return err
			}
			p.Policy = cmp.Or(p.Policy, l.db.policyOf(ctx))
			return insertReserved(ctx, tx, proposalRow{p, lock}, l.db.now())
		})
		return len(holders) == 0, err
	})
	if err != nil || len(holders) == 0 {
		return nil, err
	}
	others, err := l.db.withAbandoned(ctx, holders)
	if err != nil {
		return nil, err
	}
	return &others[0], nil
}

// findHolder returns the id of the proposal that keeps p from taking its paths, or brings one of its texts under
// another name; "" for none.
func findHolder(ctx context.Context, tx *sql.Tx, p record.Proposal, seen record.Position) (id string, err error) {
	if len(p.Files) == 0 && p.Revises == 0 {
		return "", nil
	}
	reserved := []any{textColumn(p.Provider), textColumn(p.Owner + "/" + p.Repo), textColumn(p.ID)}
	opened := []any{textColumn(p.Provider), textColumn(p.Owner), textColumn(p.Repo), int64(seen)}
	for _, path := range reservedPaths(p) {
		reserved = append(reserved, path)
	}
	for _, f := range p.Files {
		opened = append(opened, foldedPath(f.Path))
	}
	if len(p.Files) == 0 {
		opened = append(opened, textColumn("")) // a list that has nothing is not SQL
	}
	err = tx.QueryRowContext(ctx, `SELECT proposal_id FROM reservations
		WHERE provider = $1 AND repo = $2 AND proposal_id <> $3 AND path IN (`+placeholders(4, len(reserved))+`)
		ORDER BY path LIMIT 1`, reserved...).Scan((*textColumn)(&id))
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	opened = append(opened, p.Revises)
	const given = 4
	err = tx.QueryRowContext(ctx, `SELECT p.id FROM proposals p
		WHERE p.provider = $1 AND p.owner = $2 AND p.repo = $3 AND p.opened_seq > $4 AND (
			p.revises > 0 AND p.revises = $`+strconv.Itoa(len(opened))+` OR EXISTS (SELECT 1 FROM proposal_files f
				WHERE f.proposal_id = p.id AND LOWER(f.path) IN (`+placeholders(given+1, len(opened)-1)+`)))
		ORDER BY p.opened_seq DESC LIMIT 1`, opened...).Scan((*textColumn)(&id))
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	return findSameText(ctx, tx, p, seen)
}

// findSameText does for texts what findHolder does for paths.
func findSameText(ctx context.Context, tx *sql.Tx, p record.Proposal, seen record.Position) (id string, err error) {
	arguments := []any{textColumn(p.Provider), textColumn(p.Owner), textColumn(p.Repo), textColumn(p.ID), int64(seen)}
	const given = 5
	for _, f := range p.Files {
		if fingerprint := f.Fingerprint(); fingerprint != "" {
			arguments = append(arguments, fingerprint)
		}
	}
	if len(arguments) == given {
		return "", nil
	}
	// Of those that are worked on and those that were opened since, which are few, each is asked for its texts: any number
	// of old ones may have the same. The concatenation keeps SQLite from beginning with the texts.
	same := `p.id <> $4 AND EXISTS (SELECT 1 FROM proposal_files f WHERE f.proposal_id = p.id
		AND f.fingerprint || '' IN (` + placeholders(given+1, len(arguments)) + `))`
	err = tx.QueryRowContext(ctx, `SELECT id FROM (
			SELECT p.id FROM proposals p WHERE p.id IN (SELECT proposal_id FROM reservations WHERE provider = $1 AND repo = $2 || '/' || $3)
				AND p.state IN ('reserved', 'committed', 'unsettled') AND `+same+`
			UNION ALL SELECT p.id FROM proposals p
				WHERE p.provider = $1 AND p.owner = $2 AND p.repo = $3 AND p.opened_seq > $5 AND `+same+`
		) found ORDER BY id LIMIT 1`, arguments...).Scan((*textColumn)(&id))
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, err
}

// foldedPath returns the form of a path in which reservations compare paths. Canonical paths are ASCII, as far as SQL's
// LOWER goes.
func foldedPath(path string) textColumn { return textColumn(strings.ToLower(path)) }

// reservedPaths returns what a proposal reserves: its paths, and the pull request that it adds to, so that only one
// proposal at a time adds to it. No path has the form of the latter.
func reservedPaths(p record.Proposal) []textColumn {
	var out []textColumn
	for _, f := range p.Files {
		out = append(out, foldedPath(f.Path))
	}
	if p.Revises > 0 {
		out = append(out, textColumn("#"+strconv.Itoa(p.Revises)))
	}
	return out
}

// insertReserved records a proposal and takes its paths. It is dated now: what its call does before it holds the paths
// may take long, and what it has sent is looked for by this time.
func insertReserved(ctx context.Context, tx *sql.Tx, p proposalRow, now time.Time) error {
	p.CreatedAt = now
	if err := insertProposal(ctx, tx, p, now); err != nil {
		return err
	}
	for _, path := range reservedPaths(p.Proposal) {
		const insert = `INSERT INTO reservations (provider, repo, path, proposal_id) VALUES ($1, $2, $3, $4)`
		_, err := tx.ExecContext(ctx, insert, textColumn(p.Provider), textColumn(p.Owner+"/"+p.Repo), path, textColumn(p.ID))
		if err != nil {
			return err
		}
	}
	return nil
}

// Advance implements prflow.Ledger. to.State is StateReserved, StateCommitted or StateUnsettled. A proposal that is in
// none of them any more is fault.Conflict: another process has settled it.
func (l *Ledger) Advance(ctx context.Context, id string, to record.Progress) error {
	if err := checkStep(to.State, record.StateReserved, record.StateCommitted, record.StateUnsettled); err != nil {
		return err
	}
	err := l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return l.updateProgress(ctx, tx, id, to) })
	if err != nil && to.State == record.StateUnsettled || fault.CodeOf(err) == fault.Conflict {
		l.held.releaseWork(id) // others may settle it; once that is recorded they may anyway
	}
	return err
}

// Finish implements prflow.Ledger. to.State is StateOpened or StateFailed. A proposal that is settled already is
// fault.Conflict, as with Advance; attempt and notices are then not recorded, so that the caller records what it made
// of it.
func (l *Ledger) Finish(
	ctx context.Context, id string, to record.Progress, a record.Attempt, notices ...record.Notice,
) error {
	if err := checkStep(to.State, record.StateOpened, record.StateFailed); err != nil {
		return err
	}
	err := l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := l.updateProgress(ctx, tx, id, to); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM reservations WHERE proposal_id = $1`, textColumn(id)); err != nil {
			return err
		}
		if err := insertNotices(ctx, tx, notices, l.db.now()); err != nil {
			return err
		}
		seq, err := l.db.appendAudit(ctx, tx, a)
		if err != nil || to.State != record.StateOpened {
			return err
		}
		const opened = `UPDATE proposals SET opened_us = $1, opened_seq = $2 WHERE id = $3`
		if _, err = tx.ExecContext(ctx, opened, micros(l.db.now()), seq, textColumn(id)); err != nil {
			return err
		}
		return recordPull(ctx, tx, id, l.db.now())
	})
	if err != nil {
		l.held.releaseWork(id)
		return err
	}
	l.held.forget(id)
	return nil
}

// Record implements prflow.Ledger. The state recorded of dryRun is StateDryRun, whatever it says.
func (l *Ledger) Record(
	ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice,
) error {
	a.Policy = cmp.Or(a.Policy, l.db.policyOf(ctx)) // a count is recorded later
	rows, counted := []record.Attempt{a}, false
	if dryRun == nil {
		if rows, counted = l.repeats.addAttempt(a); counted {
			notices = nil // people were notified of the first
		}
	}
	err := l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if dryRun != nil {
			p := *dryRun
			p.State, p.Provider = record.StateDryRun, l.db.stored(p.Provider)
			p.Policy = cmp.Or(p.Policy, a.Policy)
			if err := insertProposal(ctx, tx, proposalRow{Proposal: p}, l.db.now()); err != nil {
				return err
			}
		}
		if err := insertNotices(ctx, tx, notices, l.db.now()); err != nil {
			return err
		}
		return l.db.appendAll(ctx, tx, rows)
	})
	if err == nil {
		return nil
	}
	if !counted {
		rows = rows[:len(rows)-1] // a, of which its caller is told
	}
	l.repeats.keepLate(rows)
	if repeatable(a) {
		l.repeats.forget(a)
	}
	return err
}

func checkStep(state record.ProposalState, accepted ...record.ProposalState) error {
	if slices.Contains(accepted, state) {
		return nil
	}
	return fault.New(fault.Internal, "a proposal cannot go to the state %q here; one of %q can", state, accepted)
}

// Adopt implements prflow.Ledger.
func (l *Ledger) Adopt(ctx context.Context, left record.Proposal) (ok bool, err error) {
	err = l.held.acquireAndRecord(ctx, left.ID, func(lock string) (bool, error) {
		err := l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			if err := l.db.checkPaused(ctx, tx, left.Owner, left.Repo); err != nil {
				return err
			}
			if back, err := l.cameBack(ctx, left); err != nil || back {
				return err
			}
			ok, err = changesOne(tx.ExecContext(ctx, `UPDATE proposals SET process = $1,
					state = CASE WHEN state <> 'unsettled' THEN state WHEN commit_id <> '' THEN 'committed' ELSE 'reserved' END
				WHERE id = $2 AND process = $3 AND state = $4 AND state IN ('reserved', 'committed', 'unsettled')`,
				textColumn(lock), textColumn(left.ID), textColumn(left.Holder), textColumn(left.State)))
			return err
		})
		return ok, err
	})
	return ok && err == nil, err
}

// cameBack reports whether the process that had abandoned a proposal was only cut off from the database, and works on
// it again.
func (l *Ledger) cameBack(ctx context.Context, left record.Proposal) (bool, error) {
	if !left.Abandoned || left.Holder == "" {
		return false, nil
	}
	ended, err := l.db.endedLocks(ctx, []string{left.Holder})
	return err == nil && !ended[left.Holder], err
}

// Supersede implements prflow.Ledger.
func (l *Ledger) Supersede(ctx context.Context, left, next record.Proposal, a record.Attempt) (ok bool, err error) {
	next.State, next.Provider = record.StateReserved, l.db.stored(next.Provider)
	err = l.held.acquireAndRecord(ctx, next.ID, func(lock string) (bool, error) {
		err := l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			if err := l.db.checkPaused(ctx, tx, next.Owner, next.Repo); err != nil {
				return err
			}
			if back, err := l.cameBack(ctx, left); err != nil || back {
				return err
			}
			ok, err = changesOne(tx.ExecContext(ctx, `UPDATE proposals SET state = 'failed'
				WHERE id = $1 AND process = $2 AND state = $3 AND state IN ('reserved', 'committed', 'unsettled')`,
				textColumn(left.ID), textColumn(left.Holder), textColumn(left.State)))
			if err != nil || !ok {
				return err
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM reservations WHERE proposal_id = $1`, textColumn(left.ID)); err != nil {
				return err
			}
			if _, err := l.db.appendAudit(ctx, tx, a); err != nil {
				return err
			}
			next.Policy = cmp.Or(next.Policy, l.db.policyOf(ctx))
			return insertReserved(ctx, tx, proposalRow{next, lock}, l.db.now())
		})
		return ok, err
	})
	return ok && err == nil, err
}

// RecordEnd appends to the audit that a person has merged or closed a pull request, and notes it in its record:
// end.State, SeenBy, EndedAt and EndedBy. The notices go to the outbox unless the record says already that it has ended
// so: then another process saw it, and people were notified.
func (l *Ledger) RecordEnd(ctx context.Context, a record.Attempt, end record.PullRecord,
	notices ...record.Notice) error {
	end.PullKey = l.db.storedKey(end.PullKey)
	return l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		records, err := selectPulls(ctx, tx, "WHERE r.provider = $1 AND r.owner = $2 AND r.repo = $3 AND r.number = $4",
			textColumn(end.Provider), textColumn(end.Owner), textColumn(end.Repo), end.Number)
		if err != nil {
			return err
		}
		if len(records) > 0 {
			news, err := endPull(ctx, tx, records[0], end)
			if err != nil {
				return err
			}
			if !news {
				notices = nil
			}
		}
		if err := insertNotices(ctx, tx, notices, l.db.now()); err != nil {
			return err
		}
		_, err = l.db.appendAudit(ctx, tx, a)
		return err
	})
}

// updateProgress updates a live proposal that this store holds, as far as it knows. Empty fields leave what is
// recorded.
func (l *Ledger) updateProgress(ctx context.Context, tx *sql.Tx, id string, to record.Progress) error {
	holder, undone := textColumn(l.held.lockOf(id)), int64(-1) // leaves what is recorded
	switch {
	case to.Undone:
		undone = micros(l.db.now())
	case to.State == record.StateOpened:
		undone = 0
	}
	changed, err := changesOne(tx.ExecContext(ctx, `UPDATE proposals SET state = $1,
			branch = COALESCE(NULLIF($2, ''), branch), commit_id = COALESCE(NULLIF($3, ''), commit_id),
			pr_number = COALESCE(NULLIF(CAST($4 AS BIGINT), 0), pr_number), pr_url = COALESCE(NULLIF($5, ''), pr_url),
			undone_us = CASE WHEN CAST($8 AS BIGINT) >= 0 THEN CAST($8 AS BIGINT) ELSE undone_us END
		WHERE id = $6 AND state IN ('reserved', 'committed', 'unsettled') AND (process = $7 OR $7 = '')`,
		textColumn(to.State), textColumn(to.Branch), textColumn(to.Commit), to.PRNumber, textColumn(to.PRURL), textColumn(id),
		holder, undone))
	if err == nil && !changed {
		return fault.New(fault.Conflict, "the reservation of proposal %q is gone: another process has settled it; "+
			"look at the open pull requests, and repeat the request if the change is still wanted", id)
	}
	return err
}

// Usage implements prflow.History.
func (h *History) Usage(ctx context.Context, provider, owner, repo string, claim record.Claim) (usage record.Usage,
	err error) {
	provider = h.db.stored(provider)
	err = h.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		usage, err = h.db.countUsage(ctx, tx, provider, owner, repo, claim)
		return err
	})
	return usage, err
}

// admit asks the claim whether p may be reserved beside what is there.
func (d *database) admit(ctx context.Context, tx *sql.Tx, p record.Proposal, claim record.Claim) error {
	if claim.Admit == nil {
		return nil
	}
	usage, err := d.countUsage(ctx, tx, p.Provider, p.Owner, p.Repo, claim)
	if err != nil {
		return err
	}
	return claim.Admit(usage)
}

// countUsage counts the pull requests of a repository, open and made, and what may become one. What adds to a pull
// request makes none.
func (d *database) countUsage(
	ctx context.Context, tx *sql.Tx, provider, owner, repo string, claim record.Claim,
) (usage record.Usage, err error) {
	usage.Open = len(claim.Open)
	// What was recorded as opened after the provider was asked may be missing among what it listed, and so may what is
	// pending.
	err = queryRows(ctx, tx, func(rows *sql.Rows) error {
		var id, state, commit string
		var number int
		if err := rows.Scan((*textColumn)(&id), (*textColumn)(&state), &number, (*textColumn)(&commit)); err != nil {
			return err
		}
		if holdsPaths(record.ProposalState(state)) {
			usage.Pending++
		}
		listed := slices.ContainsFunc(claim.Open, func(pr record.OpenPull) bool {
			return pr.Number == number || pr.Request == id || commit != "" && pr.Head == commit
		})
		if !listed {
			usage.Open++
		}
		return nil
	}, `SELECT id, state, pr_number, commit_id FROM proposals
		WHERE provider = $1 AND owner = $2 AND repo = $3 AND opened_seq > $4 AND revises = 0
		UNION SELECT id, state, pr_number, commit_id FROM proposals
		WHERE id IN (SELECT proposal_id FROM reservations WHERE provider = $1 AND repo = $5) AND revises = 0`,
		textColumn(provider), textColumn(owner), textColumn(repo), int64(claim.Seen), textColumn(owner+"/"+repo))
	if err != nil {
		return usage, err
	}
	usage.Made, err = selectRows(ctx, tx, func(rows *sql.Rows,
		opened *time.Time) error {
		return rows.Scan(timeColumn(opened))
	},
		`SELECT opened_us FROM proposals
		WHERE provider = $1 AND owner = $2 AND repo = $3 AND opened_us >= $4 AND revises = 0 ORDER BY opened_us`,
		textColumn(provider), textColumn(owner), textColumn(repo), micros(d.now().Add(-claim.Within)))
	return usage, err
}

// LiftCooldown notes that a person has lifted the cooldown of a pull request that was closed, with the row of the audit
// that says who, and when. One that is closed again later is not lifted.
func (l *Ledger) LiftCooldown(ctx context.Context, key record.PullKey, a record.Attempt) error {
	return l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO cooldown_lifts (provider, owner, repo, number, lifted_us, lifted_by)
				VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (provider, owner, repo, number) DO UPDATE SET lifted_us = excluded.lifted_us, lifted_by = excluded.lifted_by`,
			textColumn(l.db.stored(key.Provider)), textColumn(lowerASCII(key.Owner)), textColumn(lowerASCII(key.Repo)),
			key.Number, micros(a.Time),
			textColumn(a.Caller))
		if err == nil {
			_, err = l.db.appendAudit(ctx, tx, a)
		}
		return err
	})
}

// FindPull implements prflow.History.
func (h *History) FindPull(ctx context.Context, key record.PullKey) (record.PullRecord, bool, error) {
	return (&Pulls{h.db}).FindPull(ctx, key)
}

// CooldownLifted implements prflow.History.
func (h *History) CooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error) {
	return h.db.cooldownLifted(ctx, key)
}

// CooldownLifted returns who has last lifted the cooldown of a pull request, and when; "" if it was not lifted.
func (p *Pulls) CooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error) {
	return p.db.cooldownLifted(ctx, key)
}

func (d *database) cooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error) {
	_, err = d.first(ctx, []any{(*textColumn)(&by), timeColumn(&when)}, `SELECT lifted_by, lifted_us FROM cooldown_lifts
		WHERE provider = $1 AND owner = $2 AND repo = $3 AND number = $4`,
		textColumn(d.stored(key.Provider)), textColumn(lowerASCII(key.Owner)), textColumn(lowerASCII(key.Repo)), key.Number)
	return by, when, err
}
