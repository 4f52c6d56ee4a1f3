package cli

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/prflow"
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
		a := sessionAttempt(caller, requestID, actionStart, "session "+id)
		a.Tier = spec.Tier
		return p.store.Record(context.WithoutCancel(ctx), a, nil)
	}
	return spec
}

// The actions of people that are about sessions.
const (
	actionStart = "session.start"
	actionStop  = "session.stop"
)

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
