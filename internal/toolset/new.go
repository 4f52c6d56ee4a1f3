package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/strictjson"
)

// Way is what a tool asks of its calls beside what its operation says. The zero value suits tools that only read.
type Way[In any] struct {
	// Own says that the tool writes only what this program keeps for itself, such as a cache: from tier 2, and without the
	// operator's leave to write.
	Own      bool
	Approval bool               // the argument yes must be true
	Root     func(in In) string // the folder that is written, which no two calls write at once; nil or "" for none
	Check    func(in In) *Fault // what the limits of single fields cannot say; nil for nothing
	Timeout  time.Duration      // default DefaultTimeout
}

// Call is a call that has come to its handler.
type Call struct {
	operation.Call
	ID     string // of the request
	DryRun bool   // do everything but change anything, and say so in the answer
}

// New completes an operation of a toolset, and gives it its place in REST. kernel is called for each call. An error of handle that is no *Fault counts as the
// program's own failure; its text reaches only the log.
func New[In, Out any](
	kernel func() *Kernel, toolset string, o operation.Operation, way Way[In], handle func(ctx context.Context, call Call, in In) (Out, error),
) operation.Operation {
	o.LowestTier = lowestTier(o, way.Own)
	if o.Route.Method == "" {
		o.Route = route(o)
	}
	return operation.NewRaw[In](o, func(ctx context.Context, call operation.Call) (out Out, err error) {
		a := kernel().begin(toolset, o, call, way.Own)
		out, err = guarded(ctx, a, way, handle)
		if err == nil {
			out, err = finish(a, out)
		}
		return out, a.end(ctx, err)
	})
}

// guarded turns a panic into an error, whose text nobody but the log gets.
func guarded[In, Out any](ctx context.Context, a *attempt, way Way[In], handle func(context.Context, Call, In) (Out, error)) (out Out, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.kernel.Log.Error("panic in a tool", "tool", a.op.Name, "request_id", a.id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return walk(ctx, a, way, handle)
}

// walk is steps 1 to 8.
func walk[In, Out any](ctx context.Context, a *attempt, way Way[In], handle func(context.Context, Call, In) (Out, error)) (out Out, err error) {
	if refused := a.admit(); refused != nil {
		return out, refused
	}
	if way.Approval && !approved(a.call.Arguments) {
		f := refuse(Approval, fault.InvalidArgument, "%s needs the argument yes: true, which says that its effect is wanted", a.op.Name)
		f.General.Violations = []fault.Violation{{Code: fault.InvalidArgument, Path: "yes", Message: "`yes` must be true"}}
		return out, f
	}
	var in In
	if violations := strictjson.DecodeWithinLimits(a.call.Arguments, &in, strictjson.Options{RefuseNUL: true}); len(violations) > 0 {
		return out, &Fault{Reason: Arguments, General: fault.Refusal(violations)}
	}
	if way.Check != nil {
		if refused := way.Check(in); refused != nil {
			return out, refused
		}
	}
	if way.Root != nil {
		if root := way.Root(in); root != "" {
			a.paths = []string{root}
		}
	}
	if len(a.paths) > 0 && !a.dryRun {
		release, refused := a.kernel.Locks.take(ctx, a.paths[0])
		if refused != nil {
			return out, refused
		}
		defer release()
	}
	limit := way.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err = handle(limited, Call{Call: a.call, ID: a.id, DryRun: a.dryRun}, in)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return out, &Fault{Reason: TooLong, General: fault.Wrap(err, fault.Timeout, "%s took longer than %s, which is the most that it may", a.op.Name, limit)}
	}
	return out, err
}

// approved reports whether the arguments have yes: true. What else is wrong with them is found later.
func approved(arguments []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(arguments, &fields) == nil && string(fields["yes"]) == "true"
}

// Invalid is the Fault of arguments that do not go together. path is the argument to change.
func Invalid(path, format string, args ...any) *Fault {
	return &Fault{Reason: Arguments, General: fault.Refusal([]fault.Violation{
		{Code: fault.InvalidArgument, Path: path, Message: fmt.Sprintf(format, args...)},
	})}
}
