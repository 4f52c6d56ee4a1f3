package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// AppendJournal implements session.Journal.
func (s *AgentSessions) AppendJournal(ctx context.Context, by record.Actor, at time.Time, texts []string) error {
	if by.Session == nil {
		return fault.New(fault.Internal, "only a session notes something in the journal")
	}
	id := by.Session.ID
	return s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for i, entry := range texts {
			const insert = `INSERT INTO agent_journal (session, seq, time_us, body, actor) VALUES ($1, $2, $3, $4, $5)`
			if _, err := tx.ExecContext(ctx, insert, text(id), i+1, micros(at), text(entry), actor(by)); err != nil {
				return err
			}
		}
		// Sessions are sorted by time, and no table has as many rows as the limit says.
		const rest = `DELETE FROM agent_journal WHERE (session, seq) IN
			(SELECT session, seq FROM agent_journal ORDER BY session DESC, seq DESC LIMIT 1000000 OFFSET $1)`
		_, err := tx.ExecContext(ctx, rest, sessions.MaxJournal)
		return err
	})
}

// Journal implements session.Journal.
func (s *AgentSessions) Journal(ctx context.Context, q sessions.JournalQuery) ([]sessions.JournalEntry, error) {
	c := conditions{texts: []string{"1 = 1"}}
	c.equals("session = $%d", q.Session)
	limit := c.page(q.Limit, sessions.MaxJournal, sessions.MaxJournal)
	return selectOf(ctx, s.db, func(rows *sql.Rows, e *sessions.JournalEntry) error {
		return rows.Scan((*text)(&e.Session), at(&e.Time), (*text)(&e.Text), (*actor)(&e.Actor))
	}, fmt.Sprintf("SELECT session, time_us, body, actor FROM agent_journal WHERE %s ORDER BY session DESC, seq DESC LIMIT $%d",
		c.where(), limit), c.args...)
}
