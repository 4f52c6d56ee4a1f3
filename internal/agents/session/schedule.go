package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/cadence"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Service provides what a server needs to run sessions. It is safe for concurrent use.
type Service struct {
	// Supervisor gives what runs sessions, the same at each call. It is made when it is first asked for, so that a server
	// that runs no session starts no slower.
	Supervisor func() (*Supervisor, error)
	Schedule   *Schedule // nil without an interval
	MaxTier    gitprovider.Tier
	Missing    func() string // what is missing for a session to start here; nil: not checked
}

// Plan returns the operator's configuration and schedule of sessions.
func (s *Service) Plan() Plan {
	plan := Plan{MaxTier: s.MaxTier}
	if s.Missing != nil {
		plan.Missing = s.Missing()
	}
	if s.Schedule != nil {
		c := s.Schedule.Cadence
		plan.Cadence, plan.Every, plan.Next = c.Words(), c.Gap(s.Schedule.Now()), s.Schedule.Next()
		plan.After = func(due time.Time) time.Time { return c.Next(due, due) }
	}
	return plan
}

// Keep keeps the schedule until ctx ends, and then ends what runs. It returns when that has ended and is recorded.
func (s *Service) Keep(ctx context.Context) {
	if s.Schedule != nil {
		s.Schedule.Log.Info("sessions are scheduled", "when", s.Schedule.Cadence.Words())
		s.Schedule.runSchedule(ctx)
	}
	<-ctx.Done()
	if supervisor, err := s.Supervisor(); err == nil {
		supervisor.Close()
	}
}

const (
	// maxWait is the maximum wait before a Schedule reads the clock again: a clock may be set, a machine may sleep.
	maxWait = time.Minute
	// startRetry is the wait after the records could not be read or written.
	startRetry = time.Minute
	// lookBack is the number of scheduled sessions that are read to find the last one: a wrong clock may have left some
	// that lie far ahead.
	lookBack = 20
)

// ScheduleOptions configures a Schedule. All fields are required, except Refused.
type ScheduleOptions struct {
	Cadence    cadence.Cadence // from the start of one session to that of the next
	Supervisor *Supervisor
	Records    sessions.Records
	Now        func() time.Time
	After      func(time.Duration) <-chan time.Time // time.After
	Log        *slog.Logger
	// Refused records in the audit that a due session was refused; nil: it is not recorded.
	Refused func(ctx context.Context, why error)
}

// Plan is the operator's configuration and schedule of sessions.
type Plan struct {
	MaxTier gitprovider.Tier
	Cadence string        // when sessions start, for people
	Every   time.Duration // the longest time between two starts; 0: nothing is scheduled
	Next    time.Time     // zero if that is not known
	// After returns the start that is due after another one; nil if nothing is scheduled.
	After   func(due time.Time) time.Time
	Missing string // what is missing for a session to start here, for people; "" if nothing is
}

// Schedule starts sessions of tier 1 again and again. When one is due follows from the start of the last scheduled one
// in the records, so that a restart neither repeats nor leaves out any, and processes that share records share one
// schedule. Those that were missed are not made up for: at an interval one starts at once, and of a cron
// expression none. It is safe for concurrent use.
type Schedule struct {
	ScheduleOptions
	mu   sync.Mutex
	next time.Time // zero: not known yet
}

// NewSchedule makes a Schedule, which does nothing before Keep.
func NewSchedule(o ScheduleOptions) *Schedule { return &Schedule{ScheduleOptions: o} }

// runSchedule starts sessions until ctx ends. The session that runs then is not ended: Supervisor.Close does that.
func (s *Schedule) runSchedule(ctx context.Context) {
	for ctx.Err() == nil {
		wait := s.startDue(ctx)
		select {
		case <-ctx.Done():
		case <-s.After(min(wait, maxWait)):
		}
	}
}

// Next returns when the next session is due; zero if that is not known.
func (s *Schedule) Next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

func (s *Schedule) setNext(next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
}

// startDue starts what is due, and returns how long nothing is.
func (s *Schedule) startDue(ctx context.Context) time.Duration {
	now, next := s.Now(), s.Next()
	if next.IsZero() || !now.Before(next) || next.Sub(now) > s.Cadence.Gap(now) {
		var err error
		if next, err = s.due(ctx, now); err != nil {
			if ctx.Err() == nil {
				s.Log.Error("when a session is due cannot be read", "error", fault.From(err).Message)
			}
			return startRetry
		}
	}
	if !now.Before(next) {
		next = s.startScheduled(ctx)
	}
	s.setNext(next)
	return max(next.Sub(now), 0)
}

// due returns when the next session is due by the records; now or a past time if it is due already.
func (s *Schedule) due(ctx context.Context, now time.Time) (time.Time, error) {
	last, err := s.Records.Sessions(ctx, sessions.Query{Trigger: sessions.TriggerSchedule, Limit: lookBack})
	for _, r := range last {
		if !r.StartedAt.After(now.Add(s.Cadence.Gap(now))) { // else a clock was wrong, and it says nothing
			return s.Cadence.Next(r.StartedAt, now), nil
		}
	}
	return s.Cadence.Next(time.Time{}, now), err
}

// errAlreadyStarted says that another process has started the session that was due.
var errAlreadyStarted = errors.New("the session that was due has been started")

// startScheduled starts a session and returns when the next one is due.
func (s *Schedule) startScheduled(ctx context.Context) time.Time {
	now := s.Now()
	_, err := s.Supervisor.Start(ctx, Spec{Tier: gitprovider.TierObserve, Trigger: sessions.TriggerSchedule,
		Starter: record.Actor{Door: record.DoorPoll, System: record.SystemSchedule}, Scheduled: true, Admit: s.stillDue})
	if fault.CodeOf(err) == fault.Conflict && ctx.Err() == nil {
		if taken := s.stillDue(ctx, ""); taken != nil {
			err = taken
		} else {
			s.Log.Warn("a scheduled session was skipped", "reason", fault.From(err).Message)
			err = s.Supervisor.skip(ctx, sessions.CauseBusy, fault.From(err).Message)
		}
	}
	if fault.CodeOf(err) == fault.Paused && ctx.Err() == nil {
		err = s.Supervisor.skip(ctx, sessions.CausePaused, fault.From(err).Message)
	}
	if fault.CodeOf(err) == fault.Misconfigured && ctx.Err() == nil {
		if s.Refused != nil {
			s.Refused(ctx, err)
		}
		s.Log.Error("a scheduled session was refused", "error", fault.From(err).Message)
		err = s.Supervisor.skip(ctx, sessions.CauseRefused, fault.From(err).Message)
	}
	if errors.Is(err, errAlreadyStarted) {
		if next, err := s.due(ctx, now); err == nil {
			return next
		}
	}
	if err == nil || ctx.Err() != nil {
		return s.Cadence.Next(now, now)
	}
	s.Log.Error("a scheduled session could not be started", "error", fault.From(err).Message)
	return now.Add(startRetry)
}

// stillDue returns errAlreadyStarted if the session that was due has been started meanwhile.
func (s *Schedule) stillDue(ctx context.Context, _ string) error {
	now := s.Now()
	due, err := s.due(ctx, now)
	if err == nil && now.Before(due) {
		return errAlreadyStarted
	}
	return err
}
