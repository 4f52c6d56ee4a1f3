package session

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Service is what people do with sessions of agents: each action is judged by the rules of internal/operation/people
// and recorded in the audit, a refusal like a success. All fields are required but Schedule. It is safe for concurrent
// use.
type Service struct {
	People *people.Service
	Audit  operation.Audit
	// Supervisor gives what runs sessions, the same at each call. It is made when it is first asked for, so that a server that
	// runs no session starts no slower.
	Supervisor func() (*Supervisor, error)
	Schedule   *Schedule // nil without an interval
	MaxTier    gitprovider.Tier
}

// Plan is what the operator permits and has scheduled.
func (s *Service) Plan() Plan {
	plan := Plan{MaxTier: s.MaxTier}
	if s.Schedule != nil {
		plan.Every, plan.Next = s.Schedule.Every, s.Schedule.Next()
	}
	return plan
}

// Keep keeps the schedule until ctx ends, and then ends what runs. It returns when that has ended and is recorded.
func (s *Service) Keep(ctx context.Context) {
	if s.Schedule != nil {
		s.Schedule.Log.Info("sessions are scheduled", "every", s.Schedule.Every)
		s.Schedule.Keep(ctx)
	}
	<-ctx.Done()
	if supervisor, err := s.Supervisor(); err == nil {
		supervisor.Close()
	}
}

// Start starts a session for a person and returns its id when its beginning is recorded. Errors are those of Supervisor.Start
// and of internal/operation/people.
func (s *Service) Start(ctx context.Context, by people.Operator, spec Spec) (id string, err error) {
	err = s.started(ctx, by, spec, func(supervisor *Supervisor, spec Spec) error {
		id, err = supervisor.Start(ctx, spec)
		return err
	})
	return id, err
}

// Run runs a session for a person, and those that it escalates to, and waits for their end. Errors are those of Supervisor.Run
// and of internal/operation/people; a chain that has begun is on the record, so that its failure is no refusal.
func (s *Service) Run(ctx context.Context, by people.Operator, spec Spec) (records []sessions.Record, err error) {
	var ran error
	err = s.started(ctx, by, spec, func(supervisor *Supervisor, spec Spec) (err error) {
		if records, err = supervisor.Run(ctx, spec); len(records) > 0 {
			ran, err = err, nil
		}
		return err
	})
	if err == nil {
		err = ran
	}
	return records, err
}

// started has the beginning of a session recorded before it begins; if it cannot be recorded, nothing begins.
func (s *Service) started(ctx context.Context, by people.Operator, spec Spec, start func(*Supervisor, Spec) error) error {
	act := people.Act{Action: people.StartSession, By: by.By, RequestID: by.RequestID, Tier: spec.Tier}
	return s.People.Do(ctx, act, func(row people.Row) error {
		supervisor, err := s.Supervisor()
		if err != nil {
			return err
		}
		spec.Admit = func(ctx context.Context, id string) error {
			return s.Audit.Record(context.WithoutCancel(ctx), row("session "+id), nil)
		}
		return start(supervisor, spec)
	})
}

// Stop has a session end, does not wait for that, and records it. Errors are those of Supervisor.Stop and of
// internal/operation/people.
func (s *Service) Stop(ctx context.Context, by people.Operator, id string) error {
	act := people.Act{Action: people.StopSession, By: by.By, RequestID: by.RequestID}
	return s.People.Do(ctx, act, func(row people.Row) error {
		supervisor, err := s.Supervisor()
		if err != nil {
			return err
		}
		if err := supervisor.Stop(ctx, id); err != nil {
			return err
		}
		if err := s.Audit.Record(context.WithoutCancel(ctx), row("session "+id), nil); err != nil {
			e := fault.From(err)
			return fault.Wrap(err, e.Code, "the session was told to end, but that is not recorded in the audit: %s", e.Message)
		}
		return nil
	})
}

// Refused records an action that was refused before it came to Start or Stop. It returns the error with the request id of the
// row.
func (s *Service) Refused(ctx context.Context, by people.Operator, action people.Action, why error) error {
	return s.People.Refused(ctx, people.Act{Action: action, By: by.By, RequestID: by.RequestID}, why)
}
