package web

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/session"
)

// Operator is who starts and stops sessions, for the record.
type Operator struct {
	By        operation.Caller
	RequestID string // of the row of the audit
}

// Sessions is what people do with the sessions of agents. Errors are faults.
type Sessions interface {
	// Start starts a session, returns its id when its beginning is recorded, and records who did it, before it begins, or why it
	// was refused. Errors are those of session.Supervisor.
	Start(ctx context.Context, o Operator, spec session.Spec) (id string, err error)
	// Stop has a session end, does not wait for that, and records it. Errors are those of session.Supervisor.
	Stop(ctx context.Context, o Operator, id string) error
	// Refused records an action that was refused before it came to Start or Stop. It returns the error with the request id of the
	// row.
	Refused(ctx context.Context, o Operator, action people.Action, why error) error
	// Plan is what the operator permits and has scheduled.
	Plan() SessionPlan
}

// SessionPlan is what the operator permits and has scheduled.
type SessionPlan struct {
	MaxTier gitprovider.Tier
	Every   time.Duration // 0: nothing is scheduled
	Next    time.Time     // zero if that is not known
}

// SessionRecords is what is recorded of sessions. Errors are faults.
type SessionRecords interface {
	Session(ctx context.Context, id string) (session.Record, error)
	Sessions(ctx context.Context, q session.Query) ([]session.Record, error)
	// SessionEvents returns events after the number, oldest first, at most 500.
	SessionEvents(ctx context.Context, id string, after int) ([]session.Event, error)
	// LastSessionEvent is the number of the last one; 0 if there is none.
	LastSessionEvent(ctx context.Context, id string) (int, error)
	// SessionCounts counts what was proposed in a session so far.
	SessionCounts(ctx context.Context, id string) (session.Counts, error)
}

// operator is who calls, for the record.
func (s *Server) operator(c *call) Operator { return Operator{caller(c), c.id} }
