package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// used is a session of a tier that began at a time, ended so, and used as many tokens of each kind as n says.
func used(t *testing.T, s *Store, id string, tier gitprovider.Tier, began time.Time, state sessions.State, n int64,
	source sessions.CostSource) {
	t.Helper()
	r := agentSession(id)
	r.Tier, r.StartedAt = tier, began
	if state == sessions.StateSkipped {
		r.State = state
	}
	wantEqual(t, s.AgentSessions.BeginSession(context.Background(), r), nil)
	for part := min(n, 1); part <= n && state != sessions.StateSkipped; part++ { // saved again and again, it counts once
		r.State = sessions.StateRunning
		if part == n {
			r.State = state
		}
		r.Usage = sessions.Usage{
			InputTokens: part, OutputTokens: 10 * part, CacheReadTokens: 100 * part, CacheWriteTokens: 1000 * part,
			CostUSD: float64(part) / 10, CostSource: source,
		}
		wantEqual(t, s.AgentSessions.SaveSession(context.Background(), r), nil)
	}
}

func TestWhatSessionsUsedIsSummedByDayAndTier(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	yesterday := noon().AddDate(0, 0, -1)
	used(t, s, "1", 1, noon().AddDate(0, 0, -2), sessions.StateSucceeded, 3, sessions.CostClient)
	used(t, s, "2", 1, yesterday.Truncate(24*time.Hour), sessions.StateSucceeded, 2, sessions.CostClient)
	used(t, s, "3", 1, yesterday, sessions.StateTimeout, 3, sessions.CostEstimate)
	used(t, s, "4", 3, yesterday, sessions.StateFailed, 0, "")
	used(t, s, "5", 2, noon(), sessions.StateRunning, 1, sessions.CostUnknown)
	used(t, s, "6", 1, noon(), sessions.StateSkipped, 0, "")
	day := func(at time.Time, tier gitprovider.Tier, ran int, n int64, source sessions.CostSource) sessions.UsageGroup {
		return sessions.UsageGroup{Day: at.Format(time.DateOnly), Tier: tier, Sessions: ran, Usage: sessions.Usage{
			InputTokens: n, OutputTokens: 10 * n, CacheReadTokens: 100 * n, CacheWriteTokens: 1000 * n, CostUSD: float64(n) / 10,
			CostSource: source,
		}}
	}
	got, err := s.AgentSessions.UsageByDay(ctx, yesterday)
	wantEqual(t, err, nil)
	wantEqual(t, got, []sessions.UsageGroup{
		day(noon(), 2, 1, 1, sessions.CostUnknown), day(yesterday, 1, 2, 5, sessions.CostEstimate),
		day(yesterday, 3, 1, 0, ""),
	})

	got, err = s.AgentSessions.UsageOfEnded(ctx)
	wantEqual(t, err, nil)
	var states []string
	for _, g := range got {
		states = append(states, fmt.Sprint(g.State, g.Tier, g.Sessions, g.InputTokens, g.CostSource))
	}
	wantEqual(t, states, []string{"failed3 1 0", "succeeded1 2 5client", "timeout1 1 3estimate"})
}

// What a killed process saved last stands.
func TestWhatAnInterruptedSessionUsedCounts(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	r := agentSession("a")
	r.Usage = sessions.Usage{InputTokens: 7, CostUSD: 0.000000001, CostSource: sessions.CostEstimate}
	r.State = sessions.StateInterrupted
	wantEqual(t, s.AgentSessions.BeginSession(ctx, agentSession("a")), nil)
	wantEqual(t, s.AgentSessions.SaveSession(ctx, r), nil)
	got, err := s.AgentSessions.UsageOfEnded(ctx)
	wantEqual(t, err, nil)
	wantEqual(t, got, []sessions.UsageGroup{{Tier: 1, State: sessions.StateInterrupted, Sessions: 1, Usage: r.Usage}})
}

// The schedule may not run for months; how it stands is read at each scrape, and people are told once of each change.
func TestTheEndsOfTheScheduleAreCountedAndChangesReported(t *testing.T) {
	t.Parallel()
	var told []string
	now := noon()
	notices := func(r sessions.Record) []record.Notice {
		told = append(told, r.ID)
		return []record.Notice{{Event: record.EventSessionFailed, Payload: []byte(r.ID)}}
	}
	s := openWith(t, Options{Now: func() time.Time { return now }, SessionNotices: notices})
	ctx := context.Background()
	run := func(id string, trigger sessions.Trigger, state sessions.State, cause sessions.Cause) {
		now = now.Add(time.Hour)
		r := agentSession(id)
		r.Trigger, r.StartedAt = trigger, now
		if state == sessions.StateSkipped {
			r.State, r.Cause = state, cause
			wantEqual(t, s.AgentSessions.BeginSession(ctx, r), nil)
			return
		}
		wantEqual(t, s.AgentSessions.BeginSession(ctx, r), nil)
		wantEqual(t, s.AgentSessions.SaveSession(ctx, r), nil) // it runs
		r.State, r.Cause = state, cause
		for range 2 { // what became of its handoff is saved later
			wantEqual(t, s.AgentSessions.SaveSession(ctx, r), nil)
		}
	}
	got, err := s.AgentSessions.ScheduledSessions(ctx)
	wantEqual(t, err, nil)
	if got.Last != "" || !got.LastGood.IsZero() || got.Behind(time.Hour, now) {
		t.Errorf("of an empty store: %+v", got)
	}
	run("a", sessions.TriggerSchedule, sessions.StateSucceeded, "")
	good := now
	run("b", sessions.TriggerREST, sessions.StateFailed, "")
	for _, id := range []string{"c", "d", "e", "f"} {
		run(id, sessions.TriggerSchedule, sessions.StateSkipped, sessions.CauseRefused)
	}
	run("g", sessions.TriggerSchedule, sessions.StateSkipped, sessions.CauseBusy)
	run("h", sessions.TriggerSchedule, sessions.StateFailed, sessions.CauseLogin)
	run("i", sessions.TriggerSchedule, sessions.StateFailed, "")
	got, err = s.AgentSessions.ScheduledSessions(ctx)
	wantEqual(t, err, nil)
	wantEqual(t, got.Ended, map[sessions.State]int64{sessions.StateSucceeded: 1, sessions.StateFailed: 2})
	wantEqual(t, got.Skipped, map[sessions.Cause]int64{sessions.CauseRefused: 4, sessions.CauseBusy: 1})
	if !got.LastGood.Equal(good) || got.Last != sessions.StateFailed || got.Cause != "" || !got.LastAt.Equal(now) ||
		!got.Behind(time.Hour, now) || got.Behind(24*time.Hour, now) {
		t.Errorf("%+v, want a last good one at %s", got, good)
	}
	wantEqual(t, told, []string{"a", "b", "c", "g", "h", "i"})
	counts, err := s.Outbox.NoticeCounts(ctx)
	wantEqual(t, err, nil)
	wantEqual(t, counts.Pending, len(told))
}
