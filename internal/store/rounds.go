package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/record"
)

// This file keeps what internal/follow shares between processes: whose turn it is, and which webhooks were taken.

// ClaimRound reports whether the caller is to do the work of that name now: nobody has begun it within the interval every.
// Of several callers at once one is told so. next is when the work is due again, by what is recorded then. A beginning in the
// future, by a clock that was wrong, does not count.
func (s *Store) ClaimRound(ctx context.Context, name string, every time.Duration) (mine bool, next time.Time, err error) {
	now := s.opts.Now()
	begun, err := s.roundBegun(ctx, name)
	if err != nil || isRecent(begun, now, every) {
		return false, begun.Add(every), err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO rounds (name, begun_us) VALUES ($1, $3)
			ON CONFLICT (name) DO UPDATE SET begun_us = excluded.begun_us WHERE rounds.begun_us <= $2 OR rounds.begun_us > $3`,
			text(name), micros(now.Add(-every)), micros(now))
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		mine = changed == 1
		return err
	})
	return mine && err == nil, now.Add(every), err
}

// roundBegun is when the work of that name was begun last; zero if it never was.
func (s *Store) roundBegun(ctx context.Context, name string) (begun time.Time, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT begun_us FROM rounds WHERE name = $1", text(name)).Scan(at(&begun))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return begun, err
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
func (l *Lazy) FindPull(ctx context.Context, key record.PullKey) (record record.PullRecord, found bool, err error) {
	err = l.do(ctx, func(s *Store) error {
		record, found, err = s.FindPull(ctx, key)
		return err
	})
	return record, found, err
}

// OpenPullsOf is Store.OpenPullsOf.
func (l *Lazy) OpenPullsOf(ctx context.Context, provider, owner, repo, branch string) ([]record.PullKey, error) {
	return get(ctx, l, func(s *Store) ([]record.PullKey, error) { return s.OpenPullsOf(ctx, provider, owner, repo, branch) })
}

// PullRecords is Store.PullRecords.
func (l *Lazy) PullRecords(ctx context.Context, keys []record.PullKey) (map[record.PullKey]record.PullRecord, error) {
	return get(ctx, l, func(s *Store) (map[record.PullKey]record.PullRecord, error) { return s.PullRecords(ctx, keys) })
}

// DuePulls is Store.DuePulls.
func (l *Lazy) DuePulls(ctx context.Context, provider string, open, rest time.Time, limit int) ([]record.PullRecord, error) {
	return get(ctx, l, func(s *Store) ([]record.PullRecord, error) { return s.DuePulls(ctx, provider, open, rest, limit) })
}

// TriedPull is Store.TriedPull.
func (l *Lazy) TriedPull(ctx context.Context, key record.PullKey) error {
	return l.do(ctx, func(s *Store) error { return s.TriedPull(ctx, key) })
}

// SeePull is Store.SeePull.
func (l *Lazy) SeePull(ctx context.Context, seen record.PullRecord, a *record.Attempt, notices ...record.Notice) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.SeePull(ctx, seen, a, notices...) })
}

// RecordEnd is Store.RecordEnd.
func (l *Lazy) RecordEnd(ctx context.Context, a record.Attempt, end record.PullRecord, notices ...record.Notice) error {
	return l.do(ctx, func(s *Store) error { return s.RecordEnd(ctx, a, end, notices...) })
}

// ClaimRound is Store.ClaimRound.
func (l *Lazy) ClaimRound(ctx context.Context, name string, every time.Duration) (mine bool, next time.Time, err error) {
	err = l.do(ctx, func(s *Store) error {
		mine, next, err = s.ClaimRound(ctx, name, every)
		return err
	})
	return mine, next, err
}

// TakeDelivery is Store.TakeDelivery.
func (l *Lazy) TakeDelivery(ctx context.Context, provider, id string) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.TakeDelivery(ctx, provider, id) })
}
