package prflow

import (
	"context"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/operation"
)

// The methods here run an operation for callers without an entry point of their own: prompts, resources, and programs
// that hold a Service.

// Create proposes a change. raw is the JSON object of a CreateRequest. Every call leaves one attempt in the audit; if
// it cannot be recorded, nothing is proposed. RequestID in the result names the attempt; for an error use
// operation.RequestIDOf. An error is a *fault.Error with any code of the contract.
func (s *Service) Create(ctx context.Context, caller operation.Caller, raw []byte) (CreateResult, error) {
	return ask[CreateResult](ctx, s, createPR, caller, raw)
}

// Promote opens the pull request that the dry run with this id has shown, for a person.
func (s *Service) Promote(ctx context.Context, caller operation.Caller, id string) (CreateResult, error) {
	raw, err := json.Marshal(PromoteRequest{ID: id})
	if err != nil {
		return CreateResult{}, err
	}
	return ask[CreateResult](ctx, s, promoteProposal, caller, raw)
}

// Status returns one pull request. raw is the JSON object of a StatusRequest.
func (s *Service) Status(ctx context.Context, caller operation.Caller, raw []byte) (StatusResult, error) {
	return ask[StatusResult](ctx, s, getPRStatus, caller, raw)
}

// List returns a page of the open pull requests of ours. raw is the JSON object of a ListRequest.
func (s *Service) List(ctx context.Context, caller operation.Caller, raw []byte) (ListResult, error) {
	return ask[ListResult](ctx, s, listPRs, caller, raw)
}

// ReadFile reads one file. raw is the JSON object of a ReadFileRequest.
func (s *Service) ReadFile(ctx context.Context, caller operation.Caller, raw []byte) (FileText, error) {
	return ask[FileText](ctx, s, readFile, caller, raw)
}

// ListFiles lists the files that may be proposed. raw is the JSON object of a ListFilesRequest.
func (s *Service) ListFiles(ctx context.Context, caller operation.Caller, raw []byte) (FileList, error) {
	return ask[FileList](ctx, s, listFiles, caller, raw)
}

// ReadDiff reads what one of our own pull requests changes. raw is the JSON object of a ReadDiffRequest.
func (s *Service) ReadDiff(ctx context.Context, caller operation.Caller, raw []byte) (PullDiff, error) {
	return ask[PullDiff](ctx, s, readDiff, caller, raw)
}

func ask[Out any](
	ctx context.Context, s *Service, define func(func() *Service) operation.Operation, caller operation.Caller, raw []byte,
) (Out, error) {
	o := define(func() *Service { return s })
	out, err := o.Handle(ctx, operation.Call{Caller: caller, Ceiling: s.CurrentAuthority().Tier, Arguments: raw})
	return out.(Out), err
}
