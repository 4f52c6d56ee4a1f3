// Package people holds what all actions of people have in common, whatever they come through (command line, REST, dashboard):
// the operator's rules are asked before anything is done, and what came of it is a row of the audit, a refusal like a success.
// The rules stand in Rules; nothing else decides whether a person may act. Who the person is, and which scopes they have, the
// server has found out before.
package people

import (
	"context"
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/record"
)

// recordTimeout bounds the record of an act whose caller has gone.
const recordTimeout = 15 * time.Second

// Act is one thing that a person does, or wants to do. What it is not about stays empty.
type Act struct {
	Action    Action
	By        operation.Caller
	RequestID string           // of its row; "" for a new one
	Tier      gitprovider.Tier // of the session that is to start

	Provider, Owner, Name string // repository
	Number                int    // pull request
}

// Operator is who starts or stops a session, or cuts an agent off, for the record.
type Operator struct {
	By        operation.Caller
	RequestID string // of the row of the audit
}

// Audit appends to the audit. internal/store implements it.
type Audit interface {
	Record(ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice) error
}

// Options are what a Service is made of. All are required.
type Options struct {
	Settings Settings
	Audit    Audit
	Redact   func(text string) string // keeps the values of our own tokens out of the rows
	Log      *slog.Logger
	Now      func() time.Time
	NewID    func() string
}

// Service judges and records acts. It is safe for concurrent use.
type Service struct{ Options }

// New makes a Service.
func New(o Options) *Service { return &Service{o} }

// Row makes the row of the audit for an act that was done. message says what it was, for acts that are about no pull request.
type Row func(message string) record.Attempt

// Do judges the act, and then does it. do appends the row of its success to the audit itself, in the transaction of what it
// does where there is one. Every error becomes a row here. It comes back with the request id of that row; see
// operation.RequestIDOf.
//
// Errors: read_only and repo_not_allowed by the rules, and those of do.
func (s *Service) Do(ctx context.Context, act Act, do func(row Row) error) error {
	if act.RequestID == "" {
		act.RequestID = s.NewID()
	}
	started := s.Now()
	var err error
	if refusal := s.Settings.Refuses(act); refusal != nil {
		err = refusal
	} else {
		err = do(func(message string) record.Attempt {
			row := s.row(act, started)
			row.Outcome, row.Message = record.OutcomeDone, s.Redact(message)
			return row
		})
	}
	if err == nil {
		return nil
	}
	return s.refused(ctx, act, started, err)
}

// Refused records an act that was refused before it came to Do: a form that could not be read, a scope that is missing. It
// returns the error with the request id of the row.
func (s *Service) Refused(ctx context.Context, act Act, why error) error {
	if act.RequestID == "" {
		act.RequestID = s.NewID()
	}
	return s.refused(ctx, act, s.Now(), why)
}

func (s *Service) refused(ctx context.Context, act Act, started time.Time, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	e := fault.From(why)
	row := s.row(act, started)
	row.Outcome, row.Code, row.Message = record.OutcomeOf(e.Code), e.Code, s.Redact(e.Message)
	if err := s.Audit.Record(ctx, row, nil); err != nil {
		s.Log.Error("a refused action was not recorded", "action", act.Action, "caller", act.By.Name, "error", fault.From(err).Message)
		return why
	}
	return operation.Recorded(why, act.RequestID)
}

func (s *Service) row(act Act, started time.Time) record.Attempt {
	return record.Attempt{
		Time: started, RequestID: act.RequestID, Door: act.By.Door, Caller: act.By.Name, Tier: act.Tier, Action: string(act.Action),
		Provider: s.Redact(act.Provider), Owner: s.Redact(act.Owner), Repo: s.Redact(act.Name), PRNumber: act.Number,
		Duration: s.Now().Sub(started),
	}
}
