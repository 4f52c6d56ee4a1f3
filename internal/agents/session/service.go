package session

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
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
		plan.Every, plan.Next = s.Schedule.Every, s.Schedule.Next()
	}
	return plan
}

// Keep keeps the schedule until ctx ends, and then ends what runs. It returns when that has ended and is recorded.
func (s *Service) Keep(ctx context.Context) {
	if s.Schedule != nil {
		s.Schedule.Log.Info("sessions are scheduled", "every", s.Schedule.Every)
		s.Schedule.keep(ctx)
	}
	<-ctx.Done()
	if supervisor, err := s.Supervisor(); err == nil {
		supervisor.Close()
	}
}
