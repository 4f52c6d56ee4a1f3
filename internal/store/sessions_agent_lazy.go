package store

import (
	"context"

	"github.com/claudeops/claudeops/internal/session"
)

var _ session.Records = (*Lazy)(nil)

// BeginSession is Store.BeginSession.
func (l *Lazy) BeginSession(ctx context.Context, r session.Record) error {
	return l.do(ctx, func(s *Store) error { return s.BeginSession(ctx, r) })
}

// AppendEvents is Store.AppendEvents.
func (l *Lazy) AppendEvents(ctx context.Context, id string, events []session.Event) error {
	return l.do(ctx, func(s *Store) error { return s.AppendEvents(ctx, id, events) })
}

// SaveSession is Store.SaveSession.
func (l *Lazy) SaveSession(ctx context.Context, r session.Record) error {
	return l.do(ctx, func(s *Store) error { return s.SaveSession(ctx, r) })
}

// Session is Store.Session.
func (l *Lazy) Session(ctx context.Context, id string) (session.Record, error) {
	return get(ctx, l, func(s *Store) (session.Record, error) { return s.Session(ctx, id) })
}

// Sessions is Store.Sessions.
func (l *Lazy) Sessions(ctx context.Context, q session.Query) ([]session.Record, error) {
	return get(ctx, l, func(s *Store) ([]session.Record, error) { return s.Sessions(ctx, q) })
}

// SessionEvents is Store.SessionEvents.
func (l *Lazy) SessionEvents(ctx context.Context, id string, after int) ([]session.Event, error) {
	return get(ctx, l, func(s *Store) ([]session.Event, error) { return s.SessionEvents(ctx, id, after) })
}

// SessionCounts is Store.SessionCounts.
func (l *Lazy) SessionCounts(ctx context.Context, id string) (session.Counts, error) {
	return get(ctx, l, func(s *Store) (session.Counts, error) { return s.SessionCounts(ctx, id) })
}

// CloseInterrupted is Store.CloseInterrupted.
func (l *Lazy) CloseInterrupted(ctx context.Context) ([]string, error) {
	return get(ctx, l, func(s *Store) ([]string, error) { return s.CloseInterrupted(ctx) })
}
