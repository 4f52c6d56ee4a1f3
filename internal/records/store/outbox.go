package store

import (
	"context"
	"database/sql"
	"errors"
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
		if _, err := tx.ExecContext(ctx, insert, textColumn(n.Event), payload, micros(now)); err != nil {
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
	err = o.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
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
		return rows.Scan(&n.ID, (*textColumn)(&n.Event), &n.Payload, &n.Attempts, timeColumn(&n.CreatedAt))
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
	reason := textColumn(cutText(settlement.Error, maxNoticeError))
	return o.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
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
	_, err = o.db.first(ctx, []any{&counts.Pending, &counts.GivenUp, (*textColumn)(&counts.LastError)}, `SELECT
		(SELECT COUNT(*) FROM notices WHERE state = 'pending'), (SELECT COUNT(*) FROM notices WHERE state = 'given_up'),
		COALESCE((SELECT error FROM notices WHERE state <> 'delivered' AND error <> '' ORDER BY id DESC LIMIT 1), '')`)
	return counts, err
}

// JobClaims coordinates the processes that share a database: which one does periodic work, and which webhooks were
// taken.
type JobClaims struct{ db *database }

// ClaimRound reports whether the caller should do the named work now: no process has begun it within the interval
// every. Of several callers at once one gets it. next is the time when the work is due again, by the records. A
// beginning in the future, caused by a wrong clock, does not count.
func (r *JobClaims) ClaimRound(ctx context.Context, name string, every time.Duration) (mine bool, next time.Time,
	err error) {
	now := r.db.now()
	var begun time.Time
	_, err = r.db.first(ctx, []any{timeColumn(&begun)}, "SELECT begun_us FROM rounds WHERE name = $1", textColumn(name))
	if err != nil || isRecent(begun, now, every) {
		return false, begun.Add(every), err
	}
	err = r.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		mine, err = changesOne(tx.ExecContext(ctx, `INSERT INTO rounds (name, begun_us) VALUES ($1, $3)
			ON CONFLICT (name) DO UPDATE SET begun_us = excluded.begun_us WHERE rounds.begun_us <= $2 OR rounds.begun_us > $3`,
			textColumn(name), micros(now.Add(-every)), micros(now)))
		return err
	})
	return mine && err == nil, now.Add(every), err
}

// isRecent reports whether work that was begun at a time is not due again.
func isRecent(begun, now time.Time, every time.Duration) bool {
	return !begun.IsZero() && begun.Add(every).After(now) && !begun.After(now)
}

// Bounds of the memory of deliveries.
const (
	deliveryKeep = 7 * 24 * time.Hour
	maxDelivered = 20_000
)

// TakeDelivery notes a delivery of a provider's webhook, and that the pull requests that it is about wait for a look:
// they count as never tried, until somebody has. fresh is false if it was noted before, within seven days and among the
// last 20,000.
func (r *JobClaims) TakeDelivery(ctx context.Context, provider, id string, about ...record.PullKey) (fresh bool,
	err error) {
	now := r.db.now()
	err = r.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		fresh, err = noteDelivery(ctx, tx, provider, id, now)
		for _, key := range about {
			if err != nil || !fresh {
				break
			}
			_, err = tx.ExecContext(ctx,
				"UPDATE pulls SET tried_us = 0 WHERE provider = $1 AND owner = $2 AND repo = $3 AND number = $4",
				textColumn(r.db.stored(key.Provider)), textColumn(key.Owner), textColumn(key.Repo), key.Number)
		}
		return err
	})
	return fresh && err == nil, err
}

// noteDelivery notes a delivery; fresh is false if it was noted before.
func noteDelivery(ctx context.Context, tx *sql.Tx, provider, id string, now time.Time) (fresh bool, err error) {
	_, err = tx.ExecContext(ctx, `DELETE FROM webhook_deliveries WHERE seen_us <= $1 OR seen_us <= (
		SELECT seen_us FROM webhook_deliveries ORDER BY seen_us DESC LIMIT 1 OFFSET $2)`, micros(now.Add(-deliveryKeep)),
		maxDelivered-1)
	if err != nil {
		return false, err
	}
	return changesOne(tx.ExecContext(ctx, `INSERT INTO webhook_deliveries (provider, id, seen_us) VALUES ($1, $2, $3)
		ON CONFLICT (provider, id) DO NOTHING`, textColumn(provider), textColumn(bound(id, maxWord)), micros(now)))
}

// Replies stores the answers to requests with idempotency keys.
type Replies struct{ db *database }

// TakeKey takes a key of a caller for a request whose body has this hash, and returns what was answered to it before,
// if anything. conflict if the key stands for another body. Keys are forgotten once they are older than lifetime.
func (r *Replies) TakeKey(
	ctx context.Context, caller, key, bodyHash string, lifetime time.Duration,
) (reply record.Reply, err error) {
	now := r.db.now()
	err = r.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM idempotency_keys WHERE created_us <= $1", micros(now.Add(-lifetime)))
		if err != nil {
			return err
		}
		var known textColumn
		err = tx.QueryRowContext(ctx,
			"SELECT body_hash, status, answer FROM idempotency_keys WHERE principal = $1 AND key = $2",
			textColumn(caller), textColumn(key)).Scan(&known, &reply.Status, &reply.Body)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.ExecContext(ctx, `INSERT INTO idempotency_keys (principal, key, body_hash, created_us)
				VALUES ($1, $2, $3, $4)`, textColumn(caller), textColumn(key), textColumn(bodyHash), micros(now))
			return err
		case err == nil && string(known) != bodyHash:
			return fault.New(fault.Conflict, "this Idempotency-Key was used within the last %s for another request body; "+
				"make a new key for each request", lifetime)
		}
		return err
	})
	return reply, err
}

// KeepReply notes what was answered under a key. The first answer stays.
func (r *Replies) KeepReply(ctx context.Context, caller, key string, reply record.Reply) error {
	return r.db.exec(ctx,
		"UPDATE idempotency_keys SET status = $1, answer = $2 WHERE principal = $3 AND key = $4 AND status = 0",
		reply.Status, reply.Body, textColumn(caller), textColumn(key))
}
