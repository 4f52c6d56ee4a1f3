package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Replies stores the answers to requests with idempotency keys.
type Replies struct{ db *database }

// TakeKey takes a key of a caller for a request whose body has this hash, and returns what was answered to it before,
// if anything. conflict if the key stands for another body. Keys are forgotten once they are older than lifetime.
func (r *Replies) TakeKey(
	ctx context.Context, caller, key, bodyHash string, lifetime time.Duration,
) (reply record.Reply, err error) {
	now := r.db.now()
	err = r.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM idempotency_keys WHERE created_us <= $1", micros(now.Add(-lifetime)))
		if err != nil {
			return err
		}
		var known text
		err = tx.QueryRowContext(ctx,
			"SELECT body_hash, status, answer FROM idempotency_keys WHERE principal = $1 AND key = $2",
			text(caller), text(key)).Scan(&known, &reply.Status, &reply.Body)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.ExecContext(ctx, `INSERT INTO idempotency_keys (principal, key, body_hash, created_us)
				VALUES ($1, $2, $3, $4)`, text(caller), text(key), text(bodyHash), micros(now))
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
		reply.Status, reply.Body, text(caller), text(key))
}
