package scripts

import (
	"context"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// Desk serves scripts to people through pages. Every call goes through the operations.
type Desk struct{ set set }

// NewDesk makes a Desk; see Toolset.
func NewDesk(kernel func() *operation.Kernel, service func() *Service) *Desk {
	return &Desk{set{kernel, service}}
}

// List returns the scripts that can be run.
func (d *Desk) List(ctx context.Context, call operation.Call) (ScriptList, error) {
	return ask[ScriptList](ctx, d.set.listOperation(), call, ScriptListRequest{})
}

// Show returns all that is known of a script; not_found if there is none.
func (d *Desk) Show(ctx context.Context, call operation.Call, name string) (ScriptDetail, error) {
	return ask[ScriptDetail](ctx, d.set.showOperation(), call, ScriptRequest{name})
}

// Runs returns a page of runs, newest first.
func (d *Desk) Runs(ctx context.Context, call operation.Call, q ScriptRunsRequest) (ScriptRunList, error) {
	return ask[ScriptRunList](ctx, d.set.runsOperation(), call, q)
}

// Run returns a run with what it printed; not_found if there is none.
func (d *Desk) Run(ctx context.Context, call operation.Call, id string) (ScriptRunDetail, error) {
	return ask[ScriptRunDetail](ctx, d.set.runOperation(), call, ScriptRunRequest{id})
}

// Start runs a script for the person who calls, with the call's arguments. begun is called with the run's id when it
// starts.
func (d *Desk) Start(ctx context.Context, call operation.Call, name string, begun func(id string)) (StartedScript,
	error) {
	return d.set.start(ctx, call, name, begun)
}

// Refused records a run that was refused before Start was asked.
func (d *Desk) Refused(ctx context.Context, call operation.Call, name string, why *fault.Error) {
	d.set.kernel().Reject(ctx, call, name, why)
}

// ask asks an operation with a request.
func ask[Out any](ctx context.Context, o operation.Operation, call operation.Call, request any) (out Out, err error) {
	if call.Arguments, err = json.Marshal(request); err != nil {
		return out, fault.From(err)
	}
	answer, err := o.Handle(ctx, call)
	out, _ = answer.(Out)
	return out, err
}
