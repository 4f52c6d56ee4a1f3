package toolset

import (
	"cmp"
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
	// operator's leave to write. Of a tool that runs programs it says that they change nothing: it is for the tier that it names, and
	// for read-only servers too.
	Own      bool
	Approval bool // the argument yes must be true
	// Decode reads the arguments of a tool that is found while the program runs; nil: strictly into In, within the limits of its tags.
	Decode func(arguments []byte) (In, []fault.Violation)
	Check  func(in In) *Fault   // what the limits of single fields cannot say; nil for nothing
	DryRun func(in In) bool     // whether the call itself asks for a dry run; nil: it cannot
	Roots  func(in In) []string // the folders that are written, each by one call at a time; nil for none
	// Timeout is the longest that the handler may take, the waiting for locks aside. Default DefaultTimeout.
	Timeout time.Duration
	// MaxAnswer is the largest answer, in bytes of its JSON. Default MaxAnswer.
	MaxAnswer int
}

// Call is a call that has come to its handler.
type Call struct {
	operation.Call
	ID     string // of the request
	DryRun bool   // do everything but change anything, and say so in the answer
	// Progress tells the client, if it asked for that, what is being done or waited for. It is never nil.
	Progress func(phase string)
	// Note adds to the row that the audit will have, whether the call succeeds or fails; nothing of a call that leaves none. It may be
	// called once.
	Note func(n Note)
}

// Note is what the audit has to say about a call beside who, what and when. Our tokens are taken out of it.
type Note struct {
	Message string   // what was done, such as what a program printed first; a failure's own message stands before it
	Digest  string   // of what was run or written
	Paths   []string // files and folders, beside those of Way.Roots
}

// New completes an operation of a toolset, and gives it its place in REST. kernel is called for each call. An error of handle that is no *Fault counts as the
// program's own failure; its text reaches only the log.
func New[In, Out any](
	kernel func() *Kernel, toolset string, o operation.Operation, way Way[In], handle func(ctx context.Context, call Call, in In) (Out, error),
) operation.Operation {
	o.LowestTier = lowestTier(o, way.Own)
	if o.Route.Method == "" {
		o.Route = route(o, cmp.Or(way.Timeout, DefaultTimeout))
	}
	return operation.NewRaw[In](o, func(ctx context.Context, call operation.Call) (out Out, err error) {
		a := kernel().begin(toolset, o, call, way.Own)
		defer a.teller.end()
		out, err = guarded(ctx, a, way, handle)
		if err == nil {
			out, err = finish(a, out, cmp.Or(way.MaxAnswer, MaxAnswer))
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
	in, violations := decoded(way, a.call.Arguments)
	if len(violations) > 0 {
		return out, &Fault{Reason: Arguments, General: fault.Refusal(violations)}
	}
	if way.Check != nil {
		if refused := way.Check(in); refused != nil {
			return out, refused
		}
	}
	a.dryRun = a.dryRun || way.DryRun != nil && way.DryRun(in)
	if way.Roots != nil {
		a.paths = way.Roots(in)
	}
	if !a.dryRun {
		release, refused := a.kernel.Locks.takeAll(ctx, a.paths, a.teller.say)
		if refused != nil {
			return out, refused
		}
		defer release()
	}
	limit := cmp.Or(way.Timeout, DefaultTimeout)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer a.teller.keepTelling(progressEvery)()
	out, err = handle(limited, Call{Call: a.call, ID: a.id, DryRun: a.dryRun, Progress: a.teller.say, Note: func(n Note) { a.note = n }}, in)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return out, &Fault{Reason: TooLong, General: fault.Wrap(err, fault.Timeout, "%s took longer than %s, which is the most that it may", a.op.Name, limit)}
	}
	return out, err
}

func decoded[In any](way Way[In], arguments []byte) (in In, violations []fault.Violation) {
	if way.Decode != nil {
		return way.Decode(arguments)
	}
	violations = strictjson.DecodeWithinLimits(arguments, &in, strictjson.Options{RefuseNUL: true})
	return in, violations
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
