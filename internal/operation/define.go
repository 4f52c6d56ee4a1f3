package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
)

// CallSpec configures how calls of an operation are decoded, checked, locked and timed, by the type of its arguments.
// The zero value suits operations that only read.
type CallSpec[In any] struct {
	// Decode reads the arguments of a tool that is found while the program runs; nil: strictly into In, within the limits
	// of its tags.
	Decode func(arguments []byte) (In, []fault.Violation)
	Check  func(in In) *Fault   // what the limits of single fields cannot say; nil for nothing
	DryRun func(in In) bool     // whether the call itself asks for a dry run; nil: it cannot
	Roots  func(in In) []string // the folders that are written, each by one call at a time; nil for none
	Target func(in In) Target   // what a call is about; nil for nothing that its row names
	// Next names the caller's next step after a failure that does not name one itself; nil for none.
	Next func(e *fault.Error) string
	// Rejected is called for a call that never reached its handler; it may set how it is recorded (Call.Records).
	Rejected func(call Call)
	// Timeout is the longest that the handler may take, the waiting for locks aside. Default defaultTimeout.
	Timeout time.Duration
	// MaxAnswer is the largest answer, in bytes of its JSON; AnySize for none. Default maxAnswer, and for acts of people
	// any size.
	MaxAnswer int
}

// AnySize is the MaxAnswer of what bounds its answers itself.
const AnySize = -1

// RawArguments skips decoding: the handler parses Call.Arguments itself, since it reports more about them.
func RawArguments[In any]([]byte) (in In, _ []fault.Violation) { return in, nil }

// Unbounded is the Timeout of what may take as long as its caller waits.
const Unbounded time.Duration = -1

// Note holds further details of a call for its audit row. Our tokens are removed from it.
type Note struct {
	Message string   // what was done, such as what a program printed first; a failure's own message stands before it
	Digest  string   // of what was run or written
	Paths   []string // files and folders, beside those of CallSpec.Roots
}

func (n Note) empty() bool { return n.Message == "" && n.Digest == "" && len(n.Paths) == 0 }

// Handle carries out an admitted call of an operation.
type Handle[In, Out any] func(ctx context.Context, call Call, in In) (Out, error)

// Define completes an operation whose calls pass through the kernel. kernel is called for each call. toolset is the one
// that must be enabled; "" for operations without one, such as acts of people. A tool of a toolset gets its place in
// REST. An error of handle that is not a *Fault counts as the program's own failure in a tool; its text reaches only
// the log.
//
// It panics for an operation that a door could not serve.
func Define[In, Out any](kernel func() *Kernel, toolset string, o Operation, way CallSpec[In],
	handle Handle[In, Out]) Operation {
	o.Needs.For = cmp.Or(o.Needs.For, Everyone)
	s := stepsOf(o, way, handle)
	if !o.ForPeople() {
		o.Needs = o.Needs.under(o.Effect)
		if o.Route.Method == "" {
			o.Route, o.Needs.Scope = route(o, s.takes)
		}
	}
	o.Input, o.Output = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	o.mustValidate()
	made := o
	o.Handle = func(ctx context.Context, call Call) (any, error) {
		out, err := kernel().Do(ctx, toolset, made, s, call)
		if out == nil {
			var none Out
			out = none
		}
		return out, err
	}
	if o.ForPeople() || s.rejected != nil {
		o.Reject = func(ctx context.Context, call Call, why error) error {
			a := kernel().newAttempt(toolset, made, s, call)
			a.in, a.violations = s.decode(call)
			if s.rejected != nil {
				s.rejected(a.handled())
			}
			return a.recordResult(ctx, why)
		}
	}
	return o
}

// untypedSpec are a Way with the handler, without their types.
type untypedSpec struct {
	decode    func(call Call) (in any, violations []fault.Violation)
	check     func(in any) *Fault
	dryRun    func(in any) bool
	roots     func(in any) []string
	target    func(in any) Target
	next      func(e *fault.Error) string
	rejected  func(call Call)
	run       func(ctx context.Context, call Call, in any) (any, error)
	takes     time.Duration
	maxAnswer int // 0 and less for any size
}

func stepsOf[In, Out any](o Operation, way CallSpec[In], handle Handle[In, Out]) untypedSpec {
	s := untypedSpec{
		decode: func(call Call) (any, []fault.Violation) {
			if in, given := call.Input.(In); given {
				return in, nil
			}
			if way.Decode != nil {
				return way.Decode(call.Arguments)
			}
			var in In
			violations := strictjson.DecodeWithinLimits(call.Arguments, &in, strictjson.Options{RefuseNUL: true})
			if len(violations) > 0 && o.ForPeople() {
				_ = json.Unmarshal(call.Arguments, &in) // as far as it can be read, for the record of the refusal
			}
			return in, violations
		},
		check: erased(way.Check), dryRun: erased(way.DryRun), roots: erased(way.Roots), target: erased(way.Target),
		next: way.Next, rejected: way.Rejected,
		run:   func(ctx context.Context, call Call, in any) (any, error) { return handle(ctx, call, in.(In)) },
		takes: cmp.Or(way.Timeout, defaultTimeout), maxAnswer: way.MaxAnswer,
	}
	if !o.ForPeople() {
		s.maxAnswer = cmp.Or(s.maxAnswer, maxAnswer)
	}
	return s
}

// erased returns a function of a Way without the type of the arguments; nil for nil.
func erased[In, R any](f func(In) R) func(any) R {
	if f == nil {
		return nil
	}
	return func(in any) R { return f(in.(In)) }
}

// Invalid returns the Fault of arguments that do not go together. path is the argument to change.
func Invalid(path, format string, args ...any) *Fault {
	return &Fault{Reason: ReasonArguments, General: fault.Refusal([]fault.Violation{
		{Code: fault.InvalidArgument, Path: path, Message: fmt.Sprintf(format, args...)},
	})}
}
