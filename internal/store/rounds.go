package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/claudeops/claudeops/internal/prflow"
)

// This file keeps what internal/follow shares between processes: whose turn it is, and which webhooks were taken.

// ClaimRound reports whether the caller is to do the work of that name now: nobody has begun it within the interval every.
// Of several callers at once one is told so. A beginning in the future, by a clock that was wrong, does not count.
func (s *Store) ClaimRound(ctx context.Context, name string, every time.Duration) (mine bool, err error) {
	now := s.opts.Now()
	const due = "(rounds.begun_us <= $2 OR rounds.begun_us > $3)"
	var recent bool
	err = s.read(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM rounds WHERE name = $1 AND NOT "+due+")",
			text(name), micros(now.Add(-every)), micros(now)).Scan(&recent)
	})
	if err != nil || recent {
		return false, err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO rounds (name, begun_us) VALUES ($1, $3)
			ON CONFLICT (name) DO UPDATE SET begun_us = excluded.begun_us WHERE `+due,
			text(name), micros(now.Add(-every)), micros(now))
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		mine = changed == 1
		return err
	})
	return mine && err == nil, err
}

// Bounds of the memory of deliveries.
const (
	deliveryKeep = 7 * 24 * time.Hour
	maxDelivered = 20_000
)

// TakeDelivery notes a delivery of a provider's webhook. fresh is false if it was noted before, within seven days and among
// the last 20,000.
func (s *Store) TakeDelivery(ctx context.Context, provider, id string) (fresh bool, err error) {
	now := s.opts.Now()
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM webhook_deliveries WHERE seen_us <= $1 OR seen_us <= (
			SELECT seen_us FROM webhook_deliveries ORDER BY seen_us DESC LIMIT 1 OFFSET $2)`, micros(now.Add(-deliveryKeep)), maxDelivered-1)
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO webhook_deliveries (provider, id, seen_us) VALUES ($1, $2, $3)
			ON CONFLICT (provider, id) DO NOTHING`, text(provider), text(bound(id, maxWord)), micros(now))
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		fresh = changed == 1
		return err
	})
	return fresh && err == nil, err
}

// FindPull is Store.FindPull.
func (l *Lazy) FindPull(ctx context.Context, key prflow.PullKey) (record prflow.PullRecord, found bool, err error) {
	err = l.do(ctx, func(s *Store) error {
		record, found, err = s.FindPull(ctx, key)
		return err
	})
	return record, found, err
}

// PullRecords is Store.PullRecords.
func (l *Lazy) PullRecords(ctx context.Context, keys []prflow.PullKey) (map[prflow.PullKey]prflow.PullRecord, error) {
	return get(ctx, l, func(s *Store) (map[prflow.PullKey]prflow.PullRecord, error) { return s.PullRecords(ctx, keys) })
}

// DuePulls is Store.DuePulls.
func (l *Lazy) DuePulls(ctx context.Context, provider string, open, rest time.Time, limit int) ([]prflow.PullRecord, error) {
	return get(ctx, l, func(s *Store) ([]prflow.PullRecord, error) { return s.DuePulls(ctx, provider, open, rest, limit) })
}

// TriedPull is Store.TriedPull.
func (l *Lazy) TriedPull(ctx context.Context, key prflow.PullKey) error {
	return l.do(ctx, func(s *Store) error { return s.TriedPull(ctx, key) })
}

// SeePull is Store.SeePull.
func (l *Lazy) SeePull(ctx context.Context, seen prflow.PullRecord, a *prflow.Attempt, notices ...prflow.Notice) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.SeePull(ctx, seen, a, notices...) })
}

// RecordEnd is Store.RecordEnd.
func (l *Lazy) RecordEnd(ctx context.Context, a prflow.Attempt, end prflow.PullRecord, notices ...prflow.Notice) error {
	return l.do(ctx, func(s *Store) error { return s.RecordEnd(ctx, a, end, notices...) })
}

// ClaimRound is Store.ClaimRound.
func (l *Lazy) ClaimRound(ctx context.Context, name string, every time.Duration) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.ClaimRound(ctx, name, every) })
}

// TakeDelivery is Store.TakeDelivery.
func (l *Lazy) TakeDelivery(ctx context.Context, provider, id string) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.TakeDelivery(ctx, provider, id) })
}
