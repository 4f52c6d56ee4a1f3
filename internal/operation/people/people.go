// Package people says what the acts of people are called and which rules they are judged by, for those acts that are
// not operations yet: they go the way of the kernel all the same.
package people

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Act is one thing that a person does, or wants to do. What it is not about stays empty.
type Act struct {
	Action    Action
	By        operation.Caller
	RequestID string           // of its row; "" for a new one
	Tier      gitprovider.Tier // of the session that is to start

	Provider, Owner, Name string // repository
	Number                int    // pull request
}

// Operator is who starts or stops a session, for the record.
type Operator struct {
	By        operation.Caller
	RequestID string // of the row of the audit
}

// Service judges and records acts. It is safe for concurrent use.
type Service struct{ *operation.Kernel }

// Row makes the row of the audit for an act that was done; see operation.Call.Done.
type Row func(message string) record.Attempt

// Do judges the act, asks whether the person is still let in, and then does it. do that waits for something before its
// first write asks again (operation.Caller.Admitted). do appends the row of its success to the audit itself. Every
// error becomes a row here. It comes back with the request id of that row; see operation.RequestIDOf.
//
// Errors: read_only and repo_not_allowed by the rules, and those of do.
func (s *Service) Do(ctx context.Context, act Act, do func(row Row) error) error {
	if _, known := ruleOf(act.Action); !known {
		return s.Refused(ctx, act, fault.New(fault.Internal, "there is no rule for the action %q", act.Action))
	}
	_, err := s.operation(act, do).Handle(ctx, operation.Call{Caller: act.By, ID: act.RequestID})
	return err
}

// Refused records an act that was refused before it came to Do: a form that could not be read, a scope that is missing.
// It returns the error with the request id of the row.
func (s *Service) Refused(ctx context.Context, act Act, why error) error {
	return s.operation(act, nil).Reject(ctx, operation.Call{Caller: act.By, ID: act.RequestID}, why)
}

func (s *Service) operation(act Act, do func(row Row) error) operation.Operation {
	needs, _ := ruleOf(act.Action)
	needs.For = operation.People
	o := operation.Operation{Name: string(act.Action), Effect: operation.Write, Needs: needs}
	return operation.Define(func() *operation.Kernel { return s.Kernel }, "", o, operation.Way[struct{}]{
		Timeout: operation.Unbounded,
		Decode:  func([]byte) (struct{}, []fault.Violation) { return struct{}{}, nil },
		Target: func(struct{}) operation.Target {
			return operation.Target{Provider: act.Provider, Owner: act.Owner, Name: act.Name, Number: act.Number, Tier: act.Tier}
		},
	}, func(_ context.Context, call operation.Call, _ struct{}) (struct{}, error) {
		return struct{}{}, do(call.Done)
	})
}
