// This file says what the handlers of internal/web read of the record: small interfaces that the store implements.
// Errors of their methods are faults.

package views

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Records is all of it.
type Records struct {
	Attempts Attempts
	Audit    Audit
	Replies  Replies
	Summary  Summary
	Pulls    Pulls
	Sessions Sessions
	Notices  Notices
	Pauses   Pauses  // nil: nothing is ever paused
	Changes  Changes // nil where changes cannot be detected
}

// Pauses are what people have paused.
type Pauses interface {
	Pauses(ctx context.Context) ([]record.Pause, error)
}

// Attempts are attempts at proposals, and the proposals that passed the gates.
type Attempts interface {
	Attempts(ctx context.Context, q record.AttemptQuery) ([]record.RecordedAttempt, error)
	AttemptsOf(ctx context.Context, requestID string) ([]record.RecordedAttempt, error)
	Proposal(ctx context.Context, id string) (record.Proposal, error)
	// Wanted returns what is kept of the change that a refused attempt asked for; nil for nothing.
	Wanted(ctx context.Context, requestID string) (*record.RefusedChange, error)
	// MadeOf returns the proposals that opened a pull request and added to it, oldest first.
	MadeOf(ctx context.Context, provider, owner, repo string, number int) ([]record.Proposal, error)
	Ping(ctx context.Context) error
}

// Audit is the record as evidence.
type Audit interface {
	Page(ctx context.Context, q record.AuditQuery) ([]record.RecordedAttempt, error)
	Verify(ctx context.Context, expectHead string) (record.AuditReport, error)
	// VerifyAfter verifies what was added since a report that was OK.
	VerifyAfter(ctx context.Context, known record.AuditReport) (record.AuditReport, error)
	// Callers lists who is in it, by name.
	Callers(ctx context.Context, limit int) ([]string, error)
	// Entry returns the row with a number or, the newest, with a request id; not_found if there is none.
	Entry(ctx context.Context, ref string) (record.RecordedAttempt, error)
	// Head is the number of the last row and its hash; 0 if there is none.
	Head(ctx context.Context) (seq int64, hash string, err error)
	// Exports says how far the heads were exported, for each sink.
	Exports(ctx context.Context) ([]record.AuditExport, error)
}

// Replies remembers what was answered under an Idempotency-Key.
type Replies interface {
	// TakeKey takes a key of a caller for a body. It returns what was answered before, status 0 for nothing yet; conflict
	// if the key stands for another body.
	TakeKey(ctx context.Context, caller, key, bodyHash string, lifetime time.Duration) (record.Reply, error)
	// KeepReply notes what was answered. The first answer stays.
	KeepReply(ctx context.Context, caller, key string, reply record.Reply) error
}

// Summary reads the figures of the overview.
type Summary interface {
	RefusalsByGate(ctx context.Context, since time.Time) ([]record.GateCount, error)
	// RefusalsByCode counts the refused attempts since a time by their codes, the most frequent first; see store.History.
	RefusalsByCode(ctx context.Context, since time.Time) ([]record.CodeCount, error)
	FrameCounts(ctx context.Context) (record.FrameCounts, error)
	OutcomesByDay(ctx context.Context, since time.Time) ([]record.OutcomeCount, error)
	// Outcomes counts how the changes ended that were wanted since the day of a time; see store.History.
	Outcomes(ctx context.Context, since time.Time, by record.OutcomesBy) (record.OutcomeReport, error)
	// Totals counts all recorded attempts by outcome, and the refused ones by gate.
	Totals(ctx context.Context) ([]record.OutcomeTotal, []record.GateTotal, error)
	// Proposed reports whether anything was proposed at a provider.
	Proposed(ctx context.Context, provider string) (bool, error)
	Repositories(ctx context.Context) ([]record.RepoName, error)
	WaitingDryRuns(ctx context.Context, since time.Time) ([]record.Proposal, error)
	OldestDryRun(ctx context.Context, since time.Time) (time.Time, error)
	Unfinished(ctx context.Context) ([]record.Proposal, error)
}

// Pulls reads the last known states of the pull requests that we opened.
type Pulls interface {
	// PullRecords returns the records of those that are ours.
	PullRecords(ctx context.Context, keys []record.PullKey) (map[record.PullKey]record.PullRecord, error)
	// CooldownLifted returns who has last lifted the cooldown of one, and when; "" if it was not lifted.
	CooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error)
	// OpenPulls returns those that are open as far as we know, the oldest first.
	OpenPulls(ctx context.Context, limit int) ([]record.PullRecord, error)
	// StandingPulls returns the pull requests with these standings, the oldest first, at most limit of each.
	StandingPulls(ctx context.Context, standings []record.NextActor, limit int) ([]record.PullRecord, error)
	// PullTotals counts them all by where they stand, and with ended those that have ended by their state.
	PullTotals(ctx context.Context, ended bool) (record.PullTotals, error)
	// OpenPullCounts counts them by repository and age: the repositories that have most, and what the others have.
	OpenPullCounts(ctx context.Context, limit int) (most []record.OpenPulls, rest record.OpenPulls, err error)
}

// Changes tells whether anything was recorded.
type Changes interface {
	// Version is another text whenever something was recorded since, by whatever process; known is false where that is not
	// known.
	Version(ctx context.Context) (version string, known bool)
	// View runs fn with a context in which all reads, which follow one another, see the records as they are now.
	View(ctx context.Context, fn func(context.Context) error) error
}

// Notices counts the notices to people.
type Notices interface {
	NoticeCounts(ctx context.Context) (record.NoticeCounts, error)
}

// Sessions reads the records of agents' sessions.
type Sessions interface {
	Session(ctx context.Context, id string) (sessions.Record, error)
	Sessions(ctx context.Context, q sessions.Query) ([]sessions.Record, error)
	// SessionEvents returns events after the number, oldest first, at most 500.
	SessionEvents(ctx context.Context, id string, after int) ([]sessions.Event, error)
	// LastSessionEvent is the number of the last one; 0 if there is none.
	LastSessionEvent(ctx context.Context, id string) (int, error)
	// UsageByDay sums what sessions used that began on or after the day, in UTC, of a time: by that day and by tier, the
	// newest day first.
	UsageByDay(ctx context.Context, since time.Time) ([]sessions.UsageGroup, error)
	// Endings counts the sessions that began on or after the day, in UTC, of a time, by how far they are or how they
	// ended.
	Endings(ctx context.Context, since time.Time) (map[sessions.State]int, error)
	// UsageOfEnded sums what all sessions used that have ended, by state, tier and source of the cost.
	UsageOfEnded(ctx context.Context) ([]sessions.UsageGroup, error)
	// SessionsByBoundary counts the sessions that have ended by the kind of boundary that held; "" for those of which that
	// is not recorded.
	SessionsByBoundary(ctx context.Context) (map[string]int64, error)
	// ScheduledSessions says how the sessions of the schedule ended.
	ScheduledSessions(ctx context.Context) (sessions.Scheduled, error)
	// SessionCounts counts what was proposed in a session so far.
	SessionCounts(ctx context.Context, id string) (sessions.Counts, error)
	// Journal returns what agents noted for later sessions, newest first.
	Journal(ctx context.Context, q sessions.JournalQuery) ([]sessions.JournalEntry, error)
}

// CountNow returns a session with the attempts made in it so far, if it runs. Where they cannot be read, those of the
// record stand.
func CountNow(ctx context.Context, s Sessions, r sessions.Record) sessions.Record {
	if r.State == sessions.StateRunning {
		if counts, err := s.SessionCounts(ctx, r.ID); err == nil {
			r.Counts = counts
		}
	}
	return r
}

// About holds facts beside rows of the audit: their pull requests as last seen, and the sessions that they started.
type About struct {
	pulls    map[record.PullKey]record.PullRecord
	sessions map[string]sessions.State
}

// AboutOf reads what is known beside rows.
func AboutOf(ctx context.Context, p Pulls, s Sessions, rows []record.RecordedAttempt) (About, error) {
	out := About{sessions: map[string]sessions.State{}}
	if keys := record.PullKeys(rows); len(keys) > 0 {
		var err error
		if out.pulls, err = p.PullRecords(ctx, keys); err != nil {
			return out, err
		}
	}
	for _, r := range rows {
		id := r.Started()
		if _, known := out.sessions[id]; id == "" || known {
			continue
		}
		switch session, err := s.Session(ctx, id); {
		case err == nil:
			out.sessions[id] = session.State
		case fault.CodeOf(err) != fault.NotFound: // one that never was kept says nothing
			return out, err
		}
	}
	return out, nil
}

// Pull returns the last known state of the pull request that a row is about; the zero value for none of ours.
func (a About) Pull(r record.RecordedAttempt) record.PullRecord { return a.pulls[r.PullKey()] }

// Session returns the state of the session that a row started; "" for none.
func (a About) Session(r record.RecordedAttempt) sessions.State { return a.sessions[r.Started()] }

// Act returns the row as a sentence.
func (a About) Act(r record.RecordedAttempt) record.Act {
	ended := ""
	switch state := a.Session(r); state {
	case "", sessions.StateRunning, sessions.StateSucceeded:
	default:
		ended = Session(state).Text
	}
	return r.Act(record.Context{Title: a.Pull(r).Title, Ended: ended})
}

// Entry returns the row as it is given out.
func (a About) Entry(r record.RecordedAttempt, clean func(string) string) record.AuditEntry {
	e := r.Entry()
	e.PullState, e.Act = string(a.Pull(r).State), a.Act(r).Sentence(clean)
	return e
}
