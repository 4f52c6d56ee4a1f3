package cli

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/session"
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
	if p.cfg.Sessions.Schedule.Interval == 0 {
		return s, nil
	}
	supervisor, err := s.supervisor()
	if err != nil {
		return nil, err
	}
	s.schedule = session.NewSchedule(session.ScheduleOptions{
		Every: p.cfg.Sessions.Schedule.Interval, Supervisor: supervisor, Records: p.store, Now: time.Now, After: time.After, Log: p.log,
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

// byPerson starts a session for a person with start. Its beginning is recorded before it begins; if it cannot be recorded,
// nothing begins.
func (p *parts) byPerson(ctx context.Context, o people.Operator, spec session.Spec, start func(session.Spec) error) error {
	act := people.Act{Action: people.StartSession, By: o.By, RequestID: o.RequestID, Tier: spec.Tier}
	return p.people.Do(ctx, act, func(row people.Row) error {
		spec.Admit = func(ctx context.Context, id string) error {
			return p.store.Record(context.WithoutCancel(ctx), row("session "+id), nil)
		}
		return start(spec)
	})
}

// Start implements web.Sessions.
func (s *sessions) Start(ctx context.Context, o people.Operator, spec session.Spec) (id string, err error) {
	err = s.p.byPerson(ctx, o, spec, func(spec session.Spec) error {
		supervisor, err := s.supervisor()
		if err != nil {
			return err
		}
		id, err = supervisor.Start(ctx, spec)
		return err
	})
	return id, err
}

// Stop implements web.Sessions.
func (s *sessions) Stop(ctx context.Context, o people.Operator, id string) error {
	act := people.Act{Action: people.StopSession, By: o.By, RequestID: o.RequestID}
	return s.p.people.Do(ctx, act, func(row people.Row) error {
		supervisor, err := s.supervisor()
		if err != nil {
			return err
		}
		if err := supervisor.Stop(ctx, id); err != nil {
			return err
		}
		if err := s.p.store.Record(context.WithoutCancel(ctx), row("session "+id), nil); err != nil {
			e := fault.From(err)
			return fault.Wrap(err, e.Code, "the session was told to end, but that is not recorded in the audit: %s", e.Message)
		}
		return nil
	})
}

// Refused implements web.Sessions.
func (s *sessions) Refused(ctx context.Context, o people.Operator, action people.Action, why error) error {
	return s.p.people.Refused(ctx, people.Act{Action: action, By: o.By, RequestID: o.RequestID}, why)
}

// Plan implements web.Sessions.
func (s *sessions) Plan() session.Plan {
	plan := session.Plan{MaxTier: s.p.cfg.Sessions.MaxTier}
	if s.schedule != nil {
		plan.Every, plan.Next = s.schedule.Every, s.schedule.Next()
	}
	return plan
}
