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
	defaultTimeout = 30 * time.Second
	maxAnswer      = 256 << 10 // bytes of an answer's JSON, for agents
	recordTimeout  = 15 * time.Second
)

// Audit appends to the audit. internal/records/store implements it.
type Audit interface {
	Record(ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice) error
}

// KernelOptions configure a Kernel. All are required but Live and ProgressEvery; Locks only where a tool names folders
// that it writes.
type KernelOptions struct {
	// Authority is what the operator lets callers do, for as long as the process runs. Where the rules may change, Live
	// says what they are now.
	Authority Authority
	Live      func() Authority
	Audit     Audit
	Locks     *Locks
	Redact    func(text string) string // keeps the values of our own tokens out of answers and rows
	// Hide keeps what looks like a secret of anybody out of what a failure repeats of its call; nil: nothing does.
	Hide  func(text string) string
	Log   *slog.Logger
	Now   func() time.Time
	NewID func() string
	// ProgressEvery is how often a caller hears that its call still runs. Default 10 s.
	ProgressEvery time.Duration
}

// Kernel takes calls their way. It is safe for concurrent use.
type Kernel struct{ KernelOptions }

// NewKernel makes a Kernel.
func NewKernel(o KernelOptions) *Kernel { return &Kernel{o} }

// CurrentAuthority is what the operator lets callers do now. The caller keeps it for one decision.
func (k *Kernel) CurrentAuthority() Authority {
	if k.Live != nil {
		return k.Live()
	}
	return k.Authority
}

// hide keeps secrets out of a text that repeats what a caller has given.
func (k *Kernel) hide(text string) string {
	if text = k.Redact(text); k.Hide != nil {
		text = k.Hide(text)
	}
	return text
}

// attempt carries one call from the door to its row in the audit.
type attempt struct {
	kernel  *Kernel
	rules   Authority // that judge this call
	toolset string
	op      Operation
	steps   steps
	call    Call
	started time.Time
	paths   []string // the roots that are written
	dryRun  bool
	note    Note
	teller  *teller

	in         any // nil before it was read
	violations []fault.Violation
	target     *Target // nil before it was looked for
	records    func(ctx context.Context, e *fault.Error) error
}

func (k *Kernel) begin(toolset string, o Operation, s steps, call Call) *attempt {
	call.ID = cmp.Or(call.ID, k.NewID())
	call.Caller.Client = k.hide(call.Caller.Client)
	rules := k.CurrentAuthority()
	return &attempt{
		kernel: k, rules: rules, toolset: toolset, op: o, steps: s, call: call, started: k.Now(),
		dryRun: rules.DryRun && o.Effect != Read && o.Needs.Dry != DryDone, teller: &teller{tell: call.Caller.Progress},
	}
}

// Do takes a call of an operation that Define has made its way; the package comment has its steps. out is nil for a
// call that did not come to its handler.
func (k *Kernel) Do(ctx context.Context, toolset string, o Operation, s steps, call Call) (out any, err error) {
	a := k.begin(toolset, o, s, call)
	defer a.teller.end()
	out, err = a.guarded(ctx)
	if err == nil {
		out, err = a.finish(out, s.maxAnswer)
	}
	return out, a.end(ctx, err)
}

// about returns the target of the call, as far as it could be read.
func (a *attempt) about() Target {
	if a.target == nil {
		a.target = &Target{}
		if a.steps.target != nil && a.in != nil {
			*a.target = a.steps.target(a.in).after(a.violations)
		}
	}
	return *a.target
}

// guarded turns a panic into an error, whose text nobody but the log gets.
func (a *attempt) guarded(ctx context.Context) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.kernel.Log.Error("panic in an operation", "operation", a.op.Name, "request_id", a.call.ID, "panic", p, "stack",
				string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := a.read(); err != nil {
		return nil, err
	}
	s := a.steps
	a.dryRun = a.dryRun || s.dryRun != nil && s.dryRun(a.in)
	if s.roots != nil {
		a.paths = s.roots(a.in)
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
	return a.run(ctx)
}

// read judges the call and reads its arguments. A tool of agents says nothing of them to who may not call it; an act of
// a person is judged by what it is about.
func (a *attempt) read() error {
	if !a.op.ForPeople() {
		if refused := a.admit(); refused != nil {
			return refused
		}
	}
	a.in, a.violations = a.steps.decode(a.call)
	if len(a.violations) > 0 {
		return &Fault{Reason: ReasonArguments, General: fault.Refusal(a.violations)}
	}
	if a.steps.check != nil {
		if refused := a.steps.check(a.in); refused != nil {
			return refused
		}
	}
	if a.op.ForPeople() {
		if refused := a.judge(); refused != nil {
			return refused
		}
	}
	return nil
}

// handled returns the call as its handler gets it.
func (a *attempt) handled() Call {
	call := a.call
	call.DryRun, call.Progress, call.Note, call.Done = a.dryRun, a.teller.say, func(n Note) { a.note = n }, a.done
	call.Records = func(failure func(ctx context.Context, e *fault.Error) error) { a.records = failure }
	return call
}

// run runs the handler within its time. The client hears at intervals that it still runs.
func (a *attempt) run(ctx context.Context) (out any, err error) {
	s := a.steps
	defer a.teller.keepTelling(cmp.Or(a.kernel.ProgressEvery, progressEvery))()
	if s.takes == Unbounded {
		return s.run(ctx, a.handled(), a.in)
	}
	limited, cancel := context.WithTimeout(ctx, s.takes)
	defer cancel()
	out, err = s.run(limited, a.handled(), a.in)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return out, &Fault{Reason: ReasonTime,
			General: fault.Wrap(err, fault.Timeout, "%s took longer than %s, which is the most that it may", a.op.Name, s.takes)}
	}
	return out, err
}
