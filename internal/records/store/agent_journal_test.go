package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

func TestTheJournalKeepsTheNewestEntriesInTheirOrder(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	begin(t, s, "a", "b")
	journal := s.AgentSessions.AppendJournal
	wantEqual(t, journal(ctx, noting("b"), noon(), []string{"backup: 41 minutes", "nul \x00 and \xff"}), nil)
	wantEqual(t, journal(ctx, noting("a"), noon().Add(-time.Hour), []string{"backup: 40 minutes"}), nil)
	all, err := s.AgentSessions.Journal(ctx, sessions.JournalQuery{})
	wantEqual(t, err, nil)
	wantEqual(t, all, []sessions.JournalEntry{
		{Session: "b", Time: noon(), Text: "nul \x00 and \xff", Actor: noting("b")},
		{Session: "b", Time: noon(), Text: "backup: 41 minutes", Actor: noting("b")},
		{Session: "a", Time: noon().Add(-time.Hour), Text: "backup: 40 minutes", Actor: noting("a")},
	})
	of, err := s.AgentSessions.Journal(ctx, sessions.JournalQuery{Session: "a", Limit: 1})
	wantEqual(t, err, nil)
	wantEqual(t, of, all[2:])

	for i := range sessions.MaxJournal / 20 {
		id := fmt.Sprintf("c%03d", i)
		begin(t, s, id)
		texts := make([]string, 20)
		for j := range texts {
			texts[j] = fmt.Sprint(i, " ", j)
		}
		wantEqual(t, s.AgentSessions.AppendJournal(ctx, noting(id), noon(), texts), nil)
	}
	all, err = s.AgentSessions.Journal(ctx, sessions.JournalQuery{})
	wantEqual(t, err, nil)
	wantEqual(t, []any{len(all), all[0].Text, all[len(all)-1].Text}, []any{sessions.MaxJournal, "9 19", "0 0"})
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM agent_journal"), sessions.MaxJournal)

	if err := s.AgentSessions.AppendJournal(ctx, noting("nobody"), noon(), []string{"x"}); err == nil {
		t.Error("an entry of no session was kept")
	}
}

// noting is a session that notes something.
func noting(id string) record.Actor {
	return record.Actor{Session: &record.ActorSession{ID: id, Starter: &record.Actor{Person: &record.Person{
		Issuer: "https://id.example", Subject: "7", Name: "gitea:ann"}}}}
}
