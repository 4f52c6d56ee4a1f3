package cli

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/session"
	"github.com/claudeops/claudeops/internal/web"
)

// sessions are the agent sessions of a server. What they need is made by the first one, so that a server that runs none
// starts no slower.
type sessions struct {
	p          *parts
	supervisor func() (*session.Supervisor, error)
	schedule   *session.Schedule // nil without an interval
}

// newSessions makes them. An error is one of this machine's: without an interval there is none before the first session.
func newSessions(p *parts) (*sessions, error) {
	s := &sessions{p: p, supervisor: sync.OnceValues(p.supervisor)}
	if p.cfg.Session.Interval == 0 {
		return s, nil
	}
	supervisor, err := s.supervisor()
	if err != nil {
		return nil, err
	}
	s.schedule = session.NewSchedule(session.ScheduleOptions{
		Every: p.cfg.Session.Interval, Supervisor: supervisor, Records: p.store, Now: time.Now, After: time.After, Log: p.log,
	})
	return s, nil
}

// keep keeps the schedule until ctx ends, and then ends what runs. done is closed when it has ended and is recorded.
func (s *sessions) keep(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		if s.schedule != nil {
			s.p.log.Info("sessions are scheduled", "every", s.schedule.Every)
			s.schedule.Keep(ctx)
		}
		<-ctx.Done()
		if supervisor, err := s.supervisor(); err == nil {
			supervisor.Close()
		}
	}()
	return done
}

// personStarts has the start of a session recorded in the audit before it begins; if it cannot be recorded, nothing begins.
// What is refused before that, see refusedSession, is recorded by whoever asked.
func (p *parts) personStarts(caller prflow.Caller, requestID string, spec session.Spec) session.Spec {
	spec.Admit = func(ctx context.Context, id string) error {
		a := sessionAttempt(caller, requestID, web.ActionStart, "session "+id)
		a.Tier = spec.Tier
		return p.store.Record(context.WithoutCancel(ctx), a, nil)
	}
	return spec
}

func sessionAttempt(caller prflow.Caller, requestID, action, message string) prflow.Attempt {
	return prflow.Attempt{
		Time: time.Now(), RequestID: requestID, Door: caller.Door, Caller: caller.Name, Action: action,
		Outcome: prflow.OutcomeDone, Message: message,
	}
}

// refusedSession records what a person was refused about sessions.
func (p *parts) refusedSession(ctx context.Context, a prflow.Attempt, why error) {
	e := fault.From(why)
	a.Outcome, a.Code, a.Message = prflow.OutcomeRefused, e.Code, p.scanner.Redact(e.Message)
	if e.Code == fault.Internal {
		a.Outcome = prflow.OutcomeFailed
	}
	if err := p.store.Record(context.WithoutCancel(ctx), a, nil); err != nil {
		p.log.Error("what was refused about a session was not recorded", "caller", a.Caller, "error", fault.From(err).Message)
	}
}

// Start implements web.Sessions.
func (s *sessions) Start(ctx context.Context, o web.Operator, spec session.Spec) (string, error) {
	supervisor, err := s.supervisor()
	id := ""
	if err == nil {
		id, err = supervisor.Start(ctx, s.p.personStarts(o.By, o.RequestID, spec))
	}
	if err != nil {
		refused := sessionAttempt(o.By, o.RequestID, web.ActionStart, "")
		refused.Tier = spec.Tier
		s.p.refusedSession(ctx, refused, err)
	}
	return id, err
}

// Stop implements web.Sessions.
func (s *sessions) Stop(ctx context.Context, o web.Operator, id string) error {
	supervisor, err := s.supervisor()
	if err == nil {
		err = supervisor.Stop(ctx, id)
	}
	if err != nil {
		s.p.refusedSession(ctx, sessionAttempt(o.By, o.RequestID, web.ActionStop, ""), err)
		return err
	}
	if err := s.p.store.Record(context.WithoutCancel(ctx), sessionAttempt(o.By, o.RequestID, web.ActionStop, "session "+id), nil); err != nil {
		e := fault.From(err)
		return fault.Wrap(err, e.Code, "the session was told to end, but that is not recorded in the audit: %s", e.Message)
	}
	return nil
}

// Refused implements web.Sessions.
func (s *sessions) Refused(ctx context.Context, o web.Operator, action string, why *fault.Error) {
	s.p.refusedSession(ctx, sessionAttempt(o.By, o.RequestID, action, ""), why)
}

// Plan implements web.Sessions.
func (s *sessions) Plan() web.SessionPlan {
	plan := web.SessionPlan{MaxTier: s.p.cfg.Session.MaxTier}
	if s.schedule != nil {
		plan.Every, plan.Next = s.schedule.Every, s.schedule.Next()
	}
	return plan
}
