package store

import (
	"context"
	"database/sql"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

const (
	noticeKeep     = 30 * 24 * time.Hour // how long settled notices are kept
	noticePrune    = 1000                // how many are removed at once
	maxNoticeError = 500                 // bytes
)

// Outbox stores notices, recorded in the transaction that caused them, until a sender of internal/ops/notify has
// delivered them. Delivery is at least once: a sender that is killed between delivering a notice and settling it leaves
// it to the next one.
type Outbox struct{ db *database }

// insertNotices records notices that are due at once, whatever the clocks of the senders say.
func insertNotices(ctx context.Context, tx *sql.Tx, notices []record.Notice, now time.Time) error {
	for _, n := range notices {
		payload := n.Payload
		if payload == nil {
			payload = []byte{} // the column is not null
		}
		const insert = `INSERT INTO notices (event, payload, created_us) VALUES ($1, $2, $3)`
		if _, err := tx.ExecContext(ctx, insert, text(n.Event), payload, micros(now)); err != nil {
			return err
		}
	}
	return nil
}

// ClaimNotices returns at most limit notices that are due at now, oldest first, and keeps them from other callers until
// now+lease: by then the caller has settled them or died. Notices settled more than 30 days before now are removed.
// Nothing due costs one read.
func (o *Outbox) ClaimNotices(
	ctx context.Context, now time.Time, lease time.Duration, limit int,
) (claimed []record.PendingNotice, err error) {
	work, err := o.outboxHasWork(ctx, now)
	if err != nil || !work {
		return nil, err
	}
	err = o.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if claimed, err = selectDue(ctx, tx, now, limit); err != nil {
			return err
		}
		for _, n := range claimed {
			const claim = `UPDATE notices SET due_us = $1, attempts = attempts + 1 WHERE id = $2`
			if _, err := tx.ExecContext(ctx, claim, micros(now.Add(lease)), n.ID); err != nil {
				return err
			}
		}
		const prune = `DELETE FROM notices WHERE id IN (
			SELECT id FROM notices WHERE state IN ('delivered', 'given_up') AND settled_us < $1 LIMIT $2)`
		_, err := tx.ExecContext(ctx, prune, micros(now.Add(-noticeKeep)), noticePrune)
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// outboxHasWork reports whether a claim at now would change anything.
func (o *Outbox) outboxHasWork(ctx context.Context, now time.Time) (due bool, err error) {
	_, err = o.db.first(ctx, []any{&due}, `SELECT EXISTS (SELECT 1 FROM notices WHERE state = 'pending' AND due_us <= $1)
		OR EXISTS (SELECT 1 FROM notices WHERE state IN ('delivered', 'given_up') AND settled_us < $2)`,
		micros(now), micros(now.Add(-noticeKeep)))
	return due, err
}

func selectDue(ctx context.Context, tx *sql.Tx, now time.Time, limit int) ([]record.PendingNotice, error) {
	return selectRows(ctx, tx, func(rows *sql.Rows, n *record.PendingNotice) error {
		return rows.Scan(&n.ID, (*text)(&n.Event), &n.Payload, &n.Attempts, at(&n.CreatedAt))
	}, `SELECT id, event, payload, attempts, created_us FROM notices
		WHERE state = 'pending' AND due_us <= $1 ORDER BY id LIMIT $2`, micros(now), max(limit, 0))
}

// SettleNotice ends a claim. A notice that another process has settled meanwhile, because the claim had run out, keeps
// that settlement; but one that was delivered after all counts as delivered. A missing notice is not an error. A
// settlement that says neither or several things is fault.Internal.
func (o *Outbox) SettleNotice(ctx context.Context, id int64, settlement record.NoticeSettlement) error {
	ways := 0
	for _, set := range []bool{settlement.Delivered, settlement.GiveUp, !settlement.RetryAt.IsZero()} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		return fault.New(fault.Internal, "notice %d was settled in %d ways; one of delivered, given up and retried is", id,
			ways)
	}
	reason := text(cutText(settlement.Error, maxNoticeError))
	return o.db.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		now := micros(o.db.now())
		switch {
		case settlement.Delivered:
			_, err = tx.ExecContext(ctx, `UPDATE notices SET state = 'delivered', settled_us = $1, error = ''
				WHERE id = $2 AND state <> 'delivered'`, now, id)
		case settlement.GiveUp:
			_, err = tx.ExecContext(ctx, `UPDATE notices SET state = 'given_up', settled_us = $1, error = $2
				WHERE id = $3 AND state = 'pending'`, now, reason, id)
		default:
			_, err = tx.ExecContext(ctx, `UPDATE notices SET due_us = $1, error = $2
				WHERE id = $3 AND state = 'pending'`, micros(settlement.RetryAt), reason, id)
		}
		return err
	})
}

// cutText returns the first limit bytes of s, fewer so as not to split a character.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > limit-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.ToValidUTF8(s[:cut], "\uFFFD")
}

// NoticeCounts reports what waits in the outbox and what was not delivered.
func (o *Outbox) NoticeCounts(ctx context.Context) (counts record.NoticeCounts, err error) {
	_, err = o.db.first(ctx, []any{&counts.Pending, &counts.GivenUp, (*text)(&counts.LastError)}, `SELECT
		(SELECT COUNT(*) FROM notices WHERE state = 'pending'), (SELECT COUNT(*) FROM notices WHERE state = 'given_up'),
		COALESCE((SELECT error FROM notices WHERE state <> 'delivered' AND error <> '' ORDER BY id DESC LIMIT 1), '')`)
	return counts, err
}
