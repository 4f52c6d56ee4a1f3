package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Rounds coordinates the processes that share a database: which one does periodic work, and which webhooks were taken.
type Rounds struct{ db *database }

// ClaimRound reports whether the caller should do the named work now: no process has begun it within the interval
// every. Of several callers at once one gets it. next is the time when the work is due again, by the records. A
// beginning in the future, caused by a wrong clock, does not count.
func (r *Rounds) ClaimRound(ctx context.Context, name string, every time.Duration) (mine bool, next time.Time,
	err error) {
	now := r.db.now()
	var begun time.Time
	_, err = r.db.first(ctx, []any{at(&begun)}, "SELECT begun_us FROM rounds WHERE name = $1", text(name))
	if err != nil || isRecent(begun, now, every) {
		return false, begun.Add(every), err
	}
	err = r.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		mine, err = changesOne(tx.ExecContext(ctx, `INSERT INTO rounds (name, begun_us) VALUES ($1, $3)
			ON CONFLICT (name) DO UPDATE SET begun_us = excluded.begun_us WHERE rounds.begun_us <= $2 OR rounds.begun_us > $3`,
			text(name), micros(now.Add(-every)), micros(now)))
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
func (r *Rounds) TakeDelivery(ctx context.Context, provider, id string, about ...record.PullKey) (fresh bool,
	err error) {
	now := r.db.now()
	err = r.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM webhook_deliveries WHERE seen_us <= $1 OR seen_us <= (
			SELECT seen_us FROM webhook_deliveries ORDER BY seen_us DESC LIMIT 1 OFFSET $2)`, micros(now.Add(-deliveryKeep)), maxDelivered-1)
		if err != nil {
			return err
		}
		fresh, err = changesOne(tx.ExecContext(ctx, `INSERT INTO webhook_deliveries (provider, id, seen_us) VALUES ($1, $2, $3)
			ON CONFLICT (provider, id) DO NOTHING`, text(provider), text(bound(id, maxWord)), micros(now)))
		for _, key := range about {
			if err != nil || !fresh {
				break
			}
			_, err = tx.ExecContext(ctx,
				"UPDATE pulls SET tried_us = 0 WHERE provider = $1 AND owner = $2 AND repo = $3 AND number = $4",
				text(r.db.stored(key.Provider)), text(key.Owner), text(key.Repo), key.Number)
		}
		return err
	})
	return fresh && err == nil, err
}
