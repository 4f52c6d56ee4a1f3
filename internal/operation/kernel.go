package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
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

// Pauses are what people have paused. internal/records/store implements it. The error is paused then.
type Pauses interface {
	// Claim notes that somebody is about to write until release is called. owner and repo are "" for what is about no
	// repository.
	Claim(ctx context.Context, owner, repo string) (release func(), err error)
	// Paused asks without a claim.
	Paused(ctx context.Context, owner, repo string) error
}

// KernelOptions configure a Kernel. All are required but Live, Pauses and ProgressEvery; Locks only where a tool names
// folders that it writes.
type KernelOptions struct {
	// Authority is what the operator permits callers to do, fixed for the life of the process. Where the rules may change,
	// Live returns the current ones.
	Authority Authority
	Live      func() Authority
	Audit     Audit
	Pauses    Pauses // nil: nothing is ever paused
	Locks     *Locks
	Redact    func(text string) string // keeps the values of our own tokens out of answers and rows
	// Hide keeps what looks like a secret of anybody out of what a failure repeats of its call; nil: nothing does.
	Hide  func(text string) string
	Log   *slog.Logger
	Now   func() time.Time
	NewID func() string
	// ProgressEvery is the interval between progress reports of a running call. Default 10 s.
	ProgressEvery time.Duration
}

// Kernel takes calls their way. It is safe for concurrent use.
type Kernel struct{ KernelOptions }

// NewKernel makes a Kernel.
func NewKernel(o KernelOptions) *Kernel { return &Kernel{o} }

// CurrentAuthority returns what the operator permits callers to do now. The caller keeps it for one decision.
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
	steps   untypedSpec
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

func (k *Kernel) newAttempt(toolset string, o Operation, s untypedSpec, call Call) *attempt {
	call.ID = cmp.Or(call.ID, k.NewID())
	call.Caller.Client = k.hide(call.Caller.Client)
	rules := k.CurrentAuthority()
	return &attempt{
		kernel: k, rules: rules, toolset: toolset, op: o, steps: s, call: call, started: k.Now(),
		dryRun: rules.DryRun && o.Effect != Read && o.Needs.Dry != DryDone, teller: &teller{notify: call.Caller.Progress},
	}
}

// Do takes a call of an operation that Define has made its way; the package comment has its steps. out is nil for a
// call that did not come to its handler.
func (k *Kernel) Do(ctx context.Context, toolset string, o Operation, s untypedSpec, call Call) (out any, err error) {
	a := k.newAttempt(toolset, o, s, call)
	defer a.teller.stop()
	out, err = a.guarded(ctx)
	if err == nil {
		out, err = a.finishAnswer(out, s.maxAnswer)
	}
	return out, a.recordResult(ctx, err)
}

// about returns the target of the call, as far as it could be read.
func (a *attempt) about() Target {
	if a.target == nil {
		a.target = &Target{}
		if a.steps.target != nil && a.in != nil {
			*a.target = a.steps.target(a.in).validTarget(a.violations)
		}
	}
	return *a.target
}

// guarded turns a panic into an error, whose text goes only to the log.
func (a *attempt) guarded(ctx context.Context) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.kernel.Log.Error("panic in an operation", "operation", a.op.Name, "request_id", a.call.ID, "panic", p, "stack",
				string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := a.readArguments(); err != nil {
		return nil, err
	}
	s := a.steps
	a.dryRun = a.dryRun || s.dryRun != nil && s.dryRun(a.in)
	if s.roots != nil {
		a.paths = s.roots(a.in)
	}
	if !a.dryRun && len(a.paths) > 0 {
		release, refused := a.kernel.Locks.takeAll(ctx, a.paths, a.teller.setPhase)
		if refused != nil {
			return nil, refused
		}
		defer release()
	}
	if err := a.admitAgain(ctx); err != nil {
		return nil, err
	}
	if a.op.Needs.Pausable && !a.dryRun && a.kernel.Pauses != nil {
		release, err := a.kernel.Pauses.Claim(ctx, "", "")
		if err != nil {
			return nil, pausedFault(err)
		}
		defer release()
	}
	return a.runHandler(ctx)
}

// pausedFault returns a refused claim as a tool has it.
func pausedFault(err error) error {
	if fault.CodeOf(err) != fault.Paused {
		return err
	}
	return &Fault{Reason: ReasonWriting, General: fault.From(err)}
}

// readArguments judges the call and reads its arguments. A tool of agents says nothing of them to who may not call it;
// an act of a person is judged by what it is about.
func (a *attempt) readArguments() error {
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
		if refused := a.checkRules(); refused != nil {
			return refused
		}
	}
	return nil
}

// handled returns the call as its handler gets it.
func (a *attempt) handled() Call {
	call := a.call
	call.DryRun, call.Progress, call.Note, call.Done = a.dryRun, a.teller.setPhase, func(n Note) { a.note = n }, a.done
	call.Records = func(failure func(ctx context.Context, e *fault.Error) error) { a.records = failure }
	return call
}

// runHandler runs the handler within its time. The client hears at intervals that it still runs.
func (a *attempt) runHandler(ctx context.Context) (out any, err error) {
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

// recordResult records what has to be, and gives an error its request id.
func (a *attempt) recordResult(ctx context.Context, err error) error {
	if a.op.ForPeople() {
		return a.endAct(ctx, err)
	}
	a.kernel.Log.Debug("a tool was called", "tool", a.op.Name, "request_id", a.call.ID, "duration",
		a.kernel.Now().Sub(a.started), "failed", err != nil)
	reads := a.op.Effect == Read && a.note.empty() // such calls leave no row
	if err == nil && (reads || a.records != nil) {
		return nil
	}
	row := a.auditRow()
	var f *Fault
	if err != nil {
		f = a.redacted(FaultOf(err))
		row.Outcome, row.Code = record.OutcomeOf(f.General.Code), f.General.Code
		row.Message = strings.TrimSuffix(f.General.Message+"\n"+row.Message, "\n")
		if a.about().Withhold {
			row.Message = string(row.Code) + ": " + Withheld
		}
		if f.Reason == ReasonOurs {
			a.kernel.Log.Error("a tool failed", "tool", a.op.Name, "request_id", a.call.ID, "error", f.General, "cause",
				f.General.Cause)
		}
		if reads && !f.byAuthority() {
			if f.Reason == ReasonOurs || a.steps.next != nil {
				return Logged(f, a.call.ID)
			}
			return f
		}
	}
	if recordErr := a.append(ctx, row, f); recordErr != nil {
		return Logged(a.redacted(FaultOf(recordErr)), a.call.ID)
	}
	if f == nil {
		return nil
	}
	return recorded(f, a.call.ID)
}

// endAct records why an act of a person was refused or failed. Its handler has recorded its success, in the transaction
// of what it did. A refusal that cannot be recorded is one all the same. A command that cannot be understood leaves no
// row.
func (a *attempt) endAct(ctx context.Context, err error) error {
	var f *Fault
	mistyped := errors.As(err, &f) && f.Reason == ReasonArguments && a.call.Caller.Door == record.DoorCLI
	if err == nil || a.op.Effect == Read || mistyped {
		return err
	}
	said := err
	if a.records != nil || a.steps.next != nil {
		f = a.redacted(FaultOf(err))
		said = f
	}
	row := a.failedRow(err)
	if a.append(ctx, row, f) != nil {
		return said
	}
	return recorded(said, a.call.ID)
}

// Withheld stands in records for what looked like a secret.
const Withheld = textscan.Withheld

// redacted returns a failure without the values of our own tokens, and with what its caller does next.
func (a *attempt) redacted(f *Fault) *Fault {
	out := redactFault(f, a.kernel.hide)
	if out.General.Next == "" && a.steps.next != nil {
		out.General.Next = a.steps.next(out.General)
	}
	return out
}

// append records a call, or has its handler do it where that has said how. f is nil for a success.
func (a *attempt) append(ctx context.Context, row record.Attempt, f *Fault) error {
	if a.records == nil || f == nil {
		return a.recordRow(ctx, row)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return a.logged(a.records(ctx, f.General))
}

// failedRow returns the row of a failed call.
func (a *attempt) failedRow(err error) record.Attempt {
	e, row := fault.From(err), a.auditRow()
	row.Outcome, row.Code, row.Message = record.OutcomeOf(e.Code), e.Code, a.kernel.hide(e.Message)
	return row
}

// done is Call.Done.
func (a *attempt) done(message string) record.Attempt {
	row := a.auditRow()
	row.Outcome, row.Message = record.OutcomeDone, a.kernel.Redact(message)
	return row
}

func (a *attempt) auditRow() record.Attempt {
	k, about := a.kernel, a.about()
	row := record.Attempt{
		Time: k.Now(), RequestID: a.call.ID, Actor: a.call.Caller.Actor, Door: a.call.Caller.Door,
		Caller:  a.call.Caller.String(),
		Action:  cmp.Or(about.Action, a.op.Action, a.op.Name),
		Outcome: record.OutcomeDone, PRNumber: about.Number,
		Provider: k.hide(about.Provider), Owner: k.hide(about.Owner), Repo: k.hide(about.Name),
	}
	row.Duration, row.Policy = row.Time.Sub(a.started), a.rules.policyHash()
	if a.op.ForPeople() {
		row.Time, row.Tier = a.started, about.Tier
		return row
	}
	row.Tier, row.Session = a.rules.tier(a.call), a.rules.Session
	if a.dryRun {
		row.Outcome = record.OutcomeDryRun
	}
	for _, path := range slices.Concat(a.paths, about.Paths, a.note.Paths) {
		row.Paths = append(row.Paths, k.hide(path))
	}
	row.Message, row.Digest = k.Redact(a.note.Message), a.note.Digest
	return row
}

// recordRow appends the row even if its caller has gone meanwhile.
func (a *attempt) recordRow(ctx context.Context, row record.Attempt) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return a.logged(a.kernel.Audit.Record(ctx, row, nil))
}

// logged logs an error of recording, and returns it.
func (a *attempt) logged(err error) error {
	if err != nil {
		a.kernel.Log.Error("a call was not recorded", "operation", a.op.Name, "request_id", a.call.ID, "error",
			fault.From(err).Message)
	}
	return err
}

// Reject records a call that never came to its tool: too little of it could be read, or the server was too busy. name
// is "" if not even the tool is known.
func (k *Kernel) Reject(ctx context.Context, call Call, name string, why *fault.Error) {
	a := k.newAttempt("", Operation{Name: cmp.Or(name, "tools/call"), Effect: Write}, untypedSpec{}, call)
	_ = a.recordRow(ctx, a.failedRow(why)) // logged there
}

// progressEvery is the interval between progress reports of a running call. Clients of MCP give up after a minute
// without a message.
const progressEvery = 10 * time.Second

// teller tells a client what is being done: never by two at once, and nothing after the end of the call.
type teller struct {
	mu     sync.Mutex
	notify func(phase string) // nil if the client does not want to know, or after the end
	last   string             // the last phase
}

func (t *teller) setPhase(phase string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = phase
	if t.notify != nil {
		t.notify(phase)
	}
}

// still says that the last phase still runs.
func (t *teller) still(spent time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.notify == nil:
	case t.last == "":
		t.notify(fmt.Sprintf("still running after %s", spent))
	default:
		t.notify(fmt.Sprintf("%s, still running after %s", t.last, spent))
	}
}

func (t *teller) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notify = nil
}

// keepTelling says at intervals that a call still runs, until stop is called.
func (t *teller) keepTelling(every time.Duration) (stop func()) {
	if t.notify == nil { // no other goroutine uses the teller yet
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for spent := every; ; spent += every {
			select {
			case <-ticker.C:
				t.still(spent)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
