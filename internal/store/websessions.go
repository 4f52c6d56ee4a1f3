package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/access"
)

// InsertSession implements access.Sessions.
func (s *Store) InsertSession(ctx context.Context, session access.Session, madeBefore, seenBefore time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM web_sessions WHERE created_us < $1 OR seen_us < $2",
			micros(madeBefore), micros(seenBefore))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO web_sessions (hash, token_hash, created_us, seen_us) VALUES ($1, $2, $3, $4)",
			text(session.Hash), text(session.TokenHash), micros(session.CreatedAt), micros(session.SeenAt))
		return err
	})
}

// FindSession implements access.Sessions.
func (s *Store) FindSession(ctx context.Context, hash string) (session access.Session, found bool, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT hash, token_hash, created_us, seen_us FROM web_sessions WHERE hash = $1", text(hash)).
			Scan((*text)(&session.Hash), (*text)(&session.TokenHash), at(&session.CreatedAt), at(&session.SeenAt))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return session, found, err
}

// TouchSession implements access.Sessions.
func (s *Store) TouchSession(ctx context.Context, hash string, seen time.Time) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE web_sessions SET seen_us = $1 WHERE hash = $2", micros(seen), text(hash))
		return err
	})
}

// DeleteSession implements access.Sessions.
func (s *Store) DeleteSession(ctx context.Context, hash string) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM web_sessions WHERE hash = $1", text(hash))
		return err
	})
}
