package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func agentSession(id string) sessions.Record {
	return sessions.Record{
		ID:        id,
		StartedAt: noon(),
		Task:      sessions.Task{Tier: 1, Trigger: sessions.TriggerCommand, Note: "nul \x00, <&> and \u2028", Model: "haiku"},
		Ending:    sessions.Ending{State: sessions.StateRunning, ExitCode: -1},
		Work:      sessions.Work{Denials: []string{"Bash"}},
		Handover: sessions.Handover{Handoff: &sessions.Handoff{Version: 1, RecommendedTier: 2,
			Findings: []sessions.Found{{Key: "slow", Text: "slow"}}}},
	}
}

func begin(t testing.TB, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must.Do(t, s.AgentSessions.BeginSession(context.Background(), agentSession(id)))
	}
}

func TestASessionIsKeptAsItWasSaved(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	begin(t, s, "a")
	wantEqual(t, must.Get(s.AgentSessions.Session(ctx, "a"))(t), agentSession("a"))

	ended := agentSession("a")
	ended.State, ended.EndedAt, ended.Report = sessions.StateSucceeded, noon().Add(time.Minute), "all is well"
	wantEqual(t, s.AgentSessions.SaveSession(ctx, ended), nil)
	wantEqual(t, must.Get(s.AgentSessions.Session(ctx, "a"))(t), ended)

	wantCode(t, s.AgentSessions.BeginSession(ctx, agentSession("a")), fault.Internal)
	wantCode(t, s.AgentSessions.SaveSession(ctx, agentSession("b")), fault.NotFound)
	_, err := s.AgentSessions.Session(ctx, "b")
	wantCode(t, err, fault.NotFound)
}

func TestSessionsAreListedPageByPageNewestFirst(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	for i := range 5 {
		begin(t, s, fmt.Sprint(i))
	}
	var seen []string
	for before := ""; ; before = seen[len(seen)-1] {
		page := must.Get(s.AgentSessions.Sessions(ctx, sessions.Query{Before: before, Limit: 2}))(t)
		for _, r := range page {
			seen = append(seen, r.ID)
		}
		if len(page) < 2 {
			break
		}
	}
	wantEqual(t, seen, []string{"4", "3", "2", "1", "0"})
	wantEqual(t, len(must.Get(s.AgentSessions.Sessions(ctx, sessions.Query{}))(t)), 5)
}

func TestEventsAreReadFromWhereAReaderLeftOff(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	begin(t, s, "a", "b")
	events := []sessions.Event{
		{Seq: 1, Time: noon(), Kind: "init"}, {Seq: 2, Time: noon(), Kind: "tool_use", Tool: "Read",
			Text: "nul \x00 and \xff"},
		{Seq: 3, Time: noon(), Kind: "text", Text: "done"},
	}
	wantEqual(t, s.AgentSessions.AppendEvents(ctx, "a", events[:2]), nil)
	wantEqual(t, s.AgentSessions.AppendEvents(ctx, "a", events[2:]), nil)
	wantEqual(t, must.Get(s.AgentSessions.SessionEvents(ctx, "a", 0))(t), events)
	wantEqual(t, must.Get(s.AgentSessions.SessionEvents(ctx, "a", 2))(t), events[2:])
	wantEqual(t, len(must.Get(s.AgentSessions.SessionEvents(ctx, "b", 0))(t)), 0)
	if err := s.AgentSessions.AppendEvents(ctx, "a", events[:1]); err == nil {
		t.Error("an event was kept twice")
	}
	if err := s.AgentSessions.AppendEvents(ctx, "nobody", events[:1]); err == nil {
		t.Error("an event of no session was kept")
	}
}

func TestEveryAttemptAndProposalKnowsItsSession(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	for i, outcome := range []record.Outcome{
		record.OutcomeRefused, record.OutcomeRefused, record.OutcomeReused, record.OutcomeFailed, record.OutcomeDryRun,
		record.OutcomeOpened,
	} {
		a := attempt(fmt.Sprint("r", i))
		a.Outcome, a.Session = outcome, "mine"
		recordAttempts(t, s, a)
	}
	recordAttempts(t, s, attempt("of nobody"))
	counts := must.Get(s.AgentSessions.SessionCounts(ctx, "mine"))(t)
	wantEqual(t, counts, sessions.Counts{Opened: 1, Reused: 1, DryRun: 1, Refused: 2, Failed: 1})
	for _, none := range []string{"other", ""} {
		counts = must.Get(s.AgentSessions.SessionCounts(ctx, none))(t)
		wantEqual(t, counts, sessions.Counts{})
	}
	found := must.Get(s.History.Attempts(ctx, record.AttemptQuery{Session: "mine"}))(t)
	wantEqual(t, []any{len(found), found[0].Session}, []any{6, "mine"})
	wantEqual(t, must.Get(s.History.AttemptsOf(ctx, "of nobody"))(t)[0].Session, "")

	p := proposal("p", "checks/a.md")
	p.Session = "mine"
	reserve(t, s, p, 0)
	wantEqual(t, must.Get(s.History.Proposal(ctx, "p"))(t).Session, "mine")
	wantEqual(t, verify(t, s, "").Problem, "")
}

func TestSessionsOfEndedProcessesAreClosedAsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	s, other := open(t, place, Options{Now: noon}), open(t, place, Options{Now: noon})
	begin(t, s, "alive")
	begin(t, other, "lost", "done")
	done := agentSession("done")
	done.State = sessions.StateSucceeded
	wantEqual(t, other.AgentSessions.SaveSession(ctx, done), nil)
	a := attempt("r")
	a.Session, a.Outcome = "lost", record.OutcomeOpened
	recordAttempts(t, other, a)
	wantEqual(t, len(must.Get(s.AgentSessions.CloseInterrupted(ctx))(t)), 0)

	var name string
	must.Do(t, readerOf(s).QueryRow("SELECT process FROM agent_sessions WHERE id = 'lost'").Scan(&name))
	wantEqual(t, other.Close(), nil)
	waitUntilEnded(t, s, name)
	wantEqual(t, must.Get(s.AgentSessions.CloseInterrupted(ctx))(t), []string{"lost"})
	lost := must.Get(s.AgentSessions.Session(ctx, "lost"))(t)
	wantEqual(t, []any{lost.State, lost.EndedAt, lost.Counts.Opened}, []any{sessions.StateInterrupted, noon(), 1})
	wantEqual(t, must.Get(s.AgentSessions.Session(ctx, "alive"))(t).State, sessions.StateRunning)
}

func TestSessionsAreFoundByWhatTheyAre(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	for i, r := range []sessions.Record{
		{Task: sessions.Task{Tier: 1, Trigger: sessions.TriggerSchedule},
			Ending: sessions.Ending{State: sessions.StateRunning}},
		{Task: sessions.Task{Tier: 2, Trigger: sessions.TriggerSchedule},
			Ending: sessions.Ending{State: sessions.StateFailed}},
		{Task: sessions.Task{Tier: 1, Trigger: sessions.TriggerCommand, Note: `,"tier":2,"trigger":"schedule",`},
			Ending: sessions.Ending{State: sessions.StateFailed}},
		{Task: sessions.Task{Tier: 3, Trigger: sessions.TriggerREST}, Ending: sessions.Ending{State: sessions.StateSkipped},
			Handover: sessions.Handover{Handoff: &sessions.Handoff{RecommendedTier: 2}}},
	} {
		r.ID = fmt.Sprint(i)
		wantEqual(t, s.AgentSessions.BeginSession(ctx, r), nil)
	}
	for _, c := range []struct {
		query sessions.Query
		want  string
	}{
		{sessions.Query{}, "3 2 1 0 "}, {sessions.Query{Trigger: sessions.TriggerSchedule}, "1 0 "},
		{sessions.Query{Tier: 2}, "1 "},
		{sessions.Query{Tier: 1}, "2 0 "}, {sessions.Query{State: sessions.StateFailed}, "2 1 "},
		{sessions.Query{Trigger: "s%"}, ""},
		{sessions.Query{State: sessions.StateFailed, Tier: 1, Before: "3", Limit: 1}, "2 "},
		{sessions.Query{Tier: 1, Before: "2"}, "0 "},
		{sessions.Query{Oldest: true}, "0 1 2 3 "}, {sessions.Query{Oldest: true, After: "1", Limit: 1}, "2 "},
	} {
		found, err := s.AgentSessions.Sessions(ctx, c.query)
		got := ""
		for _, r := range found {
			got += r.ID + " "
		}
		if err != nil || got != c.want {
			t.Errorf("%+v: %q, %v, want %q", c.query, got, err, c.want)
		}
	}
}

func TestTheVersionOfSessionsChangesWithThem(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	seen := map[int64]string{}
	changed := func(after string) {
		t.Helper()
		version, err := s.AgentSessions.SessionsVersion(ctx)
		if earlier, known := seen[version]; err != nil || known || version < 0 {
			t.Errorf("after %s: %d, as after %q, %v", after, version, earlier, err)
		}
		if again, err := s.AgentSessions.SessionsVersion(ctx); err != nil || again != version {
			t.Errorf("after %s: %d and %d, %v", after, version, again, err)
		}
		seen[version] = after
	}
	changed("nothing")
	begin(t, s, "a")
	changed("a began")
	wantEqual(t, s.AgentSessions.AppendEvents(ctx, "a",
		[]sessions.Event{{Seq: 1, Time: noon(), Kind: "text"}, {Seq: 2, Time: noon(), Kind: "text"}}), nil)
	changed("a spoke")
	begin(t, s, "b")
	changed("b began")
	wantEqual(t, s.AgentSessions.AppendEvents(ctx, "a", []sessions.Event{{Seq: 3, Time: noon(), Kind: "text"}}), nil)
	changed("a spoke while b is newer")
	for _, id := range []string{"a", "b"} {
		r := agentSession(id)
		r.State = sessions.StateFailed
		wantEqual(t, s.AgentSessions.SaveSession(ctx, r), nil)
		changed(id + " ended")
	}
	wantEqual(t, must.Get(s.AgentSessions.LastSessionEvent(ctx, "a"))(t), 3)
	wantEqual(t, must.Get(s.AgentSessions.LastSessionEvent(ctx, "none"))(t), 0)
}

func TestASessionIsAskedToStopWhileItRuns(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openNew(t)
	r := sessions.Record{ID: "one", StartedAt: noon(), Ending: sessions.Ending{State: sessions.StateRunning}}
	wantEqual(t, s.AgentSessions.BeginSession(ctx, r), nil)
	wantEqual(t, must.Get(s.AgentSessions.StopAsked(ctx, "one"))(t), false)
	wantCode(t, s.AgentSessions.AskStop(ctx, "two"), fault.NotFound)
	wantEqual(t, s.AgentSessions.AskStop(ctx, "one"), nil)
	wantEqual(t, s.AgentSessions.AskStop(ctx, "one"), nil)
	wantEqual(t, must.Get(s.AgentSessions.StopAsked(ctx, "one"))(t), true)
	r.State = sessions.StateCancelled
	wantEqual(t, s.AgentSessions.SaveSession(ctx, r), nil)
	wantCode(t, s.AgentSessions.AskStop(ctx, "one"), fault.NotFound)
}

func runningSession(id string) sessions.Record {
	return sessions.Record{ID: id, StartedAt: noon(), Ending: sessions.Ending{State: sessions.StateRunning}}
}

// Others look at a session while the process that runs it ends it, and then its lock.
func TestASessionThatEndsWhileOthersLookStaysAsItEnded(t *testing.T) {
	ctx, place := context.Background(), emptyPlace(t)
	s, other := open(t, place, Options{}), open(t, place, Options{})
	const sessionsInAll = 40
	for i := range sessionsInAll {
		wantEqual(t, other.AgentSessions.BeginSession(ctx, runningSession(fmt.Sprint(i))), nil)
	}
	done := make(chan error)
	go func() {
		var errs []error
		for i := range sessionsInAll {
			r := runningSession(fmt.Sprint(i))
			r.State = sessions.StateSucceeded
			errs = append(errs, other.AgentSessions.SaveSession(ctx, r))
		}
		done <- errors.Join(errs...)
	}()
	for ended := false; !ended; {
		closed, err := s.AgentSessions.CloseInterrupted(ctx)
		wantEqual(t, []any{len(closed), err}, []any{0, nil})
		select {
		case err := <-done:
			wantEqual(t, err, nil)
			ended = true
		default:
		}
	}
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM agent_sessions WHERE state = 'succeeded'"), sessionsInAll)
}

func TestASessionThatHasEndedDoesNotRunAgain(t *testing.T) {
	ctx, s := context.Background(), openNew(t)
	r := runningSession("1")
	wantEqual(t, s.AgentSessions.BeginSession(ctx, r), nil)
	r.State = sessions.StateInterrupted
	wantEqual(t, s.AgentSessions.SaveSession(ctx, r), nil)
	wantCode(t, s.AgentSessions.SaveSession(ctx, runningSession("1")), fault.NotFound)
	r.State = sessions.StateSucceeded // the process that ran it knows
	wantEqual(t, s.AgentSessions.SaveSession(ctx, r), nil)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM agent_sessions WHERE state = 'succeeded'"), 1)
}

func TestTheJournalKeepsTheNewestEntriesInTheirOrder(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	begin(t, s, "a", "b")
	journal := s.AgentSessions.AppendJournal
	wantEqual(t, journal(ctx, noting("b"), noon(), []string{"backup: 41 minutes", "nul \x00 and \xff"}), nil)
	wantEqual(t, journal(ctx, noting("a"), noon().Add(-time.Hour), []string{"backup: 40 minutes"}), nil)
	all := must.Get(s.AgentSessions.Journal(ctx, sessions.JournalQuery{}))(t)
	wantEqual(t, all, []sessions.JournalEntry{
		{Session: "b", Time: noon(), Text: "nul \x00 and \xff", Actor: noting("b")},
		{Session: "b", Time: noon(), Text: "backup: 41 minutes", Actor: noting("b")},
		{Session: "a", Time: noon().Add(-time.Hour), Text: "backup: 40 minutes", Actor: noting("a")},
	})
	of := must.Get(s.AgentSessions.Journal(ctx, sessions.JournalQuery{Session: "a", Limit: 1}))(t)
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
	all = must.Get(s.AgentSessions.Journal(ctx, sessions.JournalQuery{}))(t)
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
	wantEqual(t, must.Get(s.AgentSessions.UsageByDay(ctx, yesterday))(t), []sessions.UsageGroup{
		day(noon(), 2, 1, 1, sessions.CostUnknown), day(yesterday, 1, 2, 5, sessions.CostEstimate),
		day(yesterday, 3, 1, 0, ""),
	})

	got := must.Get(s.AgentSessions.UsageOfEnded(ctx))(t)
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
	got := must.Get(s.AgentSessions.UsageOfEnded(ctx))(t)
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
		for range 2 { // how its handoff ended is saved later
			wantEqual(t, s.AgentSessions.SaveSession(ctx, r), nil)
		}
	}
	got := must.Get(s.AgentSessions.ScheduledSessions(ctx))(t)
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
	got = must.Get(s.AgentSessions.ScheduledSessions(ctx))(t)
	wantEqual(t, got.Ended, map[sessions.State]int64{sessions.StateSucceeded: 1, sessions.StateFailed: 2})
	wantEqual(t, got.Skipped, map[sessions.Cause]int64{sessions.CauseRefused: 4, sessions.CauseBusy: 1})
	if !got.LastGood.Equal(good) || got.Last != sessions.StateFailed || got.Cause != "" || !got.LastAt.Equal(now) ||
		!got.Behind(time.Hour, now) || got.Behind(24*time.Hour, now) {
		t.Errorf("%+v, want a last good one at %s", got, good)
	}
	wantEqual(t, told, []string{"a", "b", "c", "g", "h", "i"})
	wantEqual(t, must.Get(s.Outbox.NoticeCounts(ctx))(t).Pending, len(told))
}
