package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Bounds of a call.
const (
	DefaultTimeout = 30 * time.Second
	MaxAnswer      = 256 << 10 // bytes of an answer's JSON, for agents
	recordTimeout  = 15 * time.Second
)

// Audit appends to the audit. internal/records/store implements it.
type Audit interface {
	Record(ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice) error
}

// KernelOptions are what a Kernel is made of. All are required; Locks only where a tool names folders that it writes.
type KernelOptions struct {
	Authority Authority
	Audit     Audit
	Locks     *Locks
	Redact    func(text string) string // keeps the values of our own tokens out of answers and rows
	Log       *slog.Logger
	Now       func() time.Time
	NewID     func() string
}

// Kernel takes calls their way. It is safe for concurrent use.
type Kernel struct{ KernelOptions }

// NewKernel makes a Kernel.
func NewKernel(o KernelOptions) *Kernel { return &Kernel{o} }

// attempt is one call on its way.
type attempt struct {
	kernel  *Kernel
	toolset string
	op      Operation
	call    Call
	started time.Time
	target  Target
	paths   []string // the roots that are written
	dryRun  bool
	note    Note
	teller  *teller
}

func (k *Kernel) begin(toolset string, o Operation, call Call) *attempt {
	call.ID = cmp.Or(call.ID, k.NewID())
	return &attempt{
		kernel: k, toolset: toolset, op: o, call: call, started: k.Now(),
		dryRun: k.Authority.DryRun && o.Effect != Read && o.Needs.Dry != DryDone, teller: &teller{tell: call.Caller.Progress},
	}
}

// Do takes a call of an operation that Define has made its way; the package comment has its steps. out is nil for a
// call that did not come to its handler.
func (k *Kernel) Do(ctx context.Context, toolset string, o Operation, s steps, call Call) (out any, err error) {
	a := k.begin(toolset, o, call)
	defer a.teller.end()
	out, err = a.guarded(ctx, s)
	if err == nil {
		out, err = a.finish(out, s.maxAnswer)
	}
	return out, a.end(ctx, err)
}

// guarded turns a panic into an error, whose text nobody but the log gets.
func (a *attempt) guarded(ctx context.Context, s steps) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.kernel.Log.Error("panic in an operation", "operation", a.op.Name, "request_id", a.call.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	in, err := a.read(s)
	if err != nil {
		return nil, err
	}
	a.dryRun = a.dryRun || s.dryRun != nil && s.dryRun(in)
	if s.roots != nil {
		a.paths = s.roots(in)
	}
	if !a.dryRun && len(a.paths) > 0 {
		release, refused := a.kernel.Locks.takeAll(ctx, a.paths, a.teller.say)
		if refused != nil {
			return nil, refused
		}
		defer release()
	}
	if err := a.admitAgain(ctx); err != nil {
		return nil, err
	}
	return a.run(ctx, s, in)
}

// read judges the call and reads its arguments. A tool of agents says nothing of them to who may not call it; an act of
// a person is judged by what it is about.
func (a *attempt) read(s steps) (in any, err error) {
	if !a.op.ForPeople() {
		if refused := a.admit(); refused != nil {
			return nil, refused
		}
	}
	in, violations := s.decode(a.call)
	if a.op.ForPeople() && s.target != nil {
		a.target = s.target(in).after(violations)
	}
	if len(violations) > 0 {
		return nil, &Fault{Reason: ReasonArguments, General: fault.Refusal(violations)}
	}
	if s.check != nil {
		if refused := s.check(in); refused != nil {
			return nil, refused
		}
	}
	if a.op.ForPeople() {
		if refused := a.judge(); refused != nil {
			return nil, refused
		}
	}
	return in, nil
}

// run runs the handler within its time. The client hears at intervals that it still runs.
func (a *attempt) run(ctx context.Context, s steps, in any) (out any, err error) {
	call := a.call
	call.DryRun, call.Progress, call.Note = a.dryRun, a.teller.say, func(n Note) { a.note = n }
	if a.op.ForPeople() {
		call.Done = a.done
	}
	defer a.teller.keepTelling(progressEvery)()
	if s.takes == Unbounded {
		return s.run(ctx, call, in)
	}
	limited, cancel := context.WithTimeout(ctx, s.takes)
	defer cancel()
	out, err = s.run(limited, call, in)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return out, &Fault{Reason: ReasonTime, General: fault.Wrap(err, fault.Timeout, "%s took longer than %s, which is the most that it may", a.op.Name, s.takes)}
	}
	return out, err
}
