package store

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/record"
)

var (
	_ access.Tokens   = (*Lazy)(nil)
	_ access.Sessions = (*Lazy)(nil)
)

// Attempts is Store.Attempts.
func (l *Lazy) Attempts(ctx context.Context, q record.AttemptQuery) ([]record.RecordedAttempt, error) {
	return get(ctx, l, func(s *Store) ([]record.RecordedAttempt, error) { return s.Attempts(ctx, q) })
}

// AttemptsOf is Store.AttemptsOf.
func (l *Lazy) AttemptsOf(ctx context.Context, requestID string) ([]record.RecordedAttempt, error) {
	return get(ctx, l, func(s *Store) ([]record.RecordedAttempt, error) { return s.AttemptsOf(ctx, requestID) })
}

// InsertToken is Store.InsertToken.
func (l *Lazy) InsertToken(ctx context.Context, t access.Token, rows ...record.Attempt) error {
	return l.do(ctx, func(s *Store) error { return s.InsertToken(ctx, t, rows...) })
}

// Tokens is Store.Tokens.
func (l *Lazy) Tokens(ctx context.Context) ([]access.Token, error) {
	return get(ctx, l, func(s *Store) ([]access.Token, error) { return s.Tokens(ctx) })
}

// RevokeToken is Store.RevokeToken.
func (l *Lazy) RevokeToken(ctx context.Context, idOrName string, rows ...record.Attempt) error {
	return l.do(ctx, func(s *Store) error { return s.RevokeToken(ctx, idOrName, rows...) })
}

// FindToken implements access.Tokens.
func (l *Lazy) FindToken(ctx context.Context, hash string) (t access.Token, found bool, err error) {
	err = l.do(ctx, func(s *Store) error {
		t, found, err = s.FindToken(ctx, hash)
		return err
	})
	return t, found, err
}

// TokenNamed implements access.Tokens.
func (l *Lazy) TokenNamed(ctx context.Context, name string) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.TokenNamed(ctx, name) })
}

// AnyToken is that of Store.
func (l *Lazy) AnyToken(ctx context.Context) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.AnyToken(ctx) })
}

// InsertSession implements access.Sessions.
func (l *Lazy) InsertSession(ctx context.Context, session access.Session, madeBefore, seenBefore time.Time) error {
	return l.do(ctx, func(s *Store) error { return s.InsertSession(ctx, session, madeBefore, seenBefore) })
}

// FindSession implements access.Sessions.
func (l *Lazy) FindSession(ctx context.Context, hash string) (session access.Session, found bool, err error) {
	err = l.do(ctx, func(s *Store) error {
		session, found, err = s.FindSession(ctx, hash)
		return err
	})
	return session, found, err
}

// TouchSession implements access.Sessions.
func (l *Lazy) TouchSession(ctx context.Context, hash string, seen time.Time) error {
	return l.do(ctx, func(s *Store) error { return s.TouchSession(ctx, hash, seen) })
}

// DeleteSession implements access.Sessions.
func (l *Lazy) DeleteSession(ctx context.Context, hash string) error {
	return l.do(ctx, func(s *Store) error { return s.DeleteSession(ctx, hash) })
}

// TakeKey is Store.TakeKey.
func (l *Lazy) TakeKey(ctx context.Context, caller, key, bodyHash string, lifetime time.Duration) (record.Reply, error) {
	return get(ctx, l, func(s *Store) (record.Reply, error) { return s.TakeKey(ctx, caller, key, bodyHash, lifetime) })
}

// KeepReply is Store.KeepReply.
func (l *Lazy) KeepReply(ctx context.Context, caller, key string, reply record.Reply) error {
	return l.do(ctx, func(s *Store) error { return s.KeepReply(ctx, caller, key, reply) })
}
