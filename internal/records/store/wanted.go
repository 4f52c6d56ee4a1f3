package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Bounds of what is kept of refused attempts: an agent that tries again and again must not fill the disk.
const (
	maxWantedKept = 1000     // attempts, the newest
	maxWanted     = 16 << 10 // bytes of one
)

// keepWanted keeps what a refused attempt wanted, and lets the oldest go.
func keepWanted(ctx context.Context, tx *sql.Tx, row auditRow) error {
	if row.Wanted == nil {
		return nil
	}
	change, err := json.Marshal(row.Wanted)
	if err != nil || len(change) > maxWanted {
		return err
	}
	const insert = `INSERT INTO refused_changes (request_id, created_us, change) VALUES ($1, $2, $3) ON CONFLICT (request_id) DO NOTHING`
	if _, err := tx.ExecContext(ctx, insert, text(bound(row.RequestID, maxWord)), micros(row.Time),
		text(change)); err != nil {
		return err
	}
	const trim = `DELETE FROM refused_changes WHERE request_id IN
		(SELECT request_id FROM refused_changes ORDER BY created_us DESC, request_id DESC LIMIT 100 OFFSET $1)`
	_, err = tx.ExecContext(ctx, trim, maxWantedKept)
	return err
}

// Wanted returns what is kept of the change that a refused attempt asked for; nil for nothing.
func (h *History) Wanted(ctx context.Context, requestID string) (*record.RefusedChange, error) {
	var change text
	found, err := h.db.first(ctx, []any{&change}, "SELECT change FROM refused_changes WHERE request_id = $1",
		text(bound(requestID, maxWord)))
	if err != nil || !found {
		return nil, err
	}
	out := &record.RefusedChange{}
	if err := json.Unmarshal([]byte(change), out); err != nil {
		return nil, fault.Wrap(err, fault.Internal,
			"what a refused attempt wanted is damaged in the record; restore a backup")
	}
	return out, nil
}
