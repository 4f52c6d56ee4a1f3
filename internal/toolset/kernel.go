package toolset

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/record"
)

// Bounds of a call.
const (
	DefaultTimeout = 30 * time.Second
	MaxAnswer      = 256 << 10 // bytes of an answer's JSON
	recordTimeout  = 15 * time.Second
)

// Authority is what the operator lets callers do.
type Authority struct {
	Enabled    func(toolset string) bool
	Tier       gitprovider.Tier
	AllowWrite bool // writes beyond the program's own folders
	DryRun     bool
	ReadOnly   string // why nothing may be written; "" if it may
	Session    string // the agent's session that this process serves; "" for none
	// Least is the lowest tier that the operator's policy lets call a tool; a tool's own holds if it is higher. nil for none.
	Least func(tool string) gitprovider.Tier
}

// Audit appends to the audit. internal/store implements it.
type Audit interface {
	Record(ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice) error
}

// Options are what a Kernel is made of. All are required.
type Options struct {
	Authority Authority
	Audit     Audit
	Locks     *Locks
	Redact    func(text string) string // keeps the values of our own tokens out of answers and rows
	Log       *slog.Logger
	Now       func() time.Time
	NewID     func() string
}

// Kernel takes calls their way. It is safe for concurrent use.
type Kernel struct{ Options }

// NewKernel makes a Kernel.
func NewKernel(o Options) *Kernel { return &Kernel{o} }

// Listed reports whether tools/list shows a tool: what writes is shown only where it may. own is Way.Own.
func (k *Kernel) Listed(o operation.Operation, own bool) bool {
	return own || o.Effect != operation.Write || k.Authority.AllowWrite && k.Authority.ReadOnly == "" && k.Authority.Tier >= k.least(o, own)
}

// least is the tier that a tool needs here.
func (k *Kernel) least(o operation.Operation, own bool) gitprovider.Tier {
	if k.Authority.Least == nil {
		return lowestTier(o, own)
	}
	return max(lowestTier(o, own), k.Authority.Least(o.Name))
}

// lowestTier is the tier that a tool needs. Writing needs the highest, if it is not to the program's own folders.
func lowestTier(o operation.Operation, own bool) gitprovider.Tier {
	switch {
	case o.Effect == operation.Write && !own:
		return gitprovider.TierRemediate
	case o.Effect == operation.Exec && own:
		return max(o.LowestTier, gitprovider.TierObserve)
	case o.Effect != operation.Read:
		return max(o.LowestTier, gitprovider.TierInvestigate)
	}
	return o.LowestTier
}

// attempt is one call on its way.
type attempt struct {
	kernel  *Kernel
	toolset string
	op      operation.Operation
	call    operation.Call
	own     bool
	id      string
	started time.Time
	paths   []string // the roots that are written
	dryRun  bool
	note    Note
	teller  *teller
}

func (k *Kernel) begin(toolset string, o operation.Operation, call operation.Call, own bool) *attempt {
	return &attempt{
		kernel: k, toolset: toolset, op: o, call: call, own: own, id: k.NewID(), started: k.Now(),
		dryRun: k.Authority.DryRun && o.Effect != operation.Read, teller: &teller{tell: call.Caller.Progress},
	}
}

// Tier is the lower one of the server's and the caller's. A person's own credential alone says what they may.
func (k *Kernel) Tier(call operation.Call) gitprovider.Tier {
	if call.Person {
		return call.Ceiling
	}
	return min(k.Authority.Tier, call.Ceiling)
}

func (a *attempt) tier() gitprovider.Tier { return a.kernel.Tier(a.call) }

// admit is steps 1 and 2.
func (a *attempt) admit() *Fault {
	rules := a.kernel.Authority
	least := a.kernel.least(a.op, a.own)
	switch {
	case !rules.Enabled(a.toolset):
		return refuse(Disabled, fault.NotFound, "the toolset %s is not enabled; the operator enables it with CLAUDEOPS_TOOLSETS", a.toolset)
	case a.tier() < least:
		return refuse(Tier, fault.TierDenied, "%s needs tier %s; this is tier %s. Do not try again: report what is needed, so that a person or a higher tier does it",
			a.op.Name, least, a.tier())
	case a.op.Effect == operation.Read:
		return nil
	case rules.ReadOnly != "" && (a.op.Effect != operation.Exec || !a.own):
		return refuse(NoWriting, fault.ReadOnly, "%s", rules.ReadOnly)
	case a.op.Effect == operation.Write && !a.own && !rules.AllowWrite:
		return refuse(NoWriting, fault.ReadOnly, "%s writes, which the operator has not allowed; CLAUDEOPS_ALLOW_WRITE=true or --allow-write does", a.op.Name)
	case rules.DryRun && !a.op.HonoursDryRun:
		return refuse(NoWriting, fault.ReadOnly, "this is a dry run, and %s cannot be tried without doing it", a.op.Name)
	}
	return nil
}

// end records what has to be, and gives an error its request id.
func (a *attempt) end(ctx context.Context, err error) error {
	a.kernel.Log.Debug("a tool was called", "tool", a.op.Name, "request_id", a.id, "duration", a.kernel.Now().Sub(a.started), "failed", err != nil)
	if err == nil && a.op.Effect == operation.Read {
		return nil
	}
	row := a.row()
	var f *Fault
	if err != nil {
		f = From(err)
		f = redactFault(f, a.kernel.Redact)
		row.Outcome, row.Code = record.OutcomeOf(f.General.Code), f.General.Code
		row.Message = strings.TrimSuffix(f.General.Message+"\n"+row.Message, "\n")
		if f.Reason == Ours {
			a.kernel.Log.Error("a tool failed", "tool", a.op.Name, "request_id", a.id, "error", f.General, "cause", f.General.Cause)
		}
		if a.op.Effect == operation.Read && !f.byAuthority() {
			if f.Reason == Ours {
				return operation.Logged(f, a.id)
			}
			return f
		}
	}
	if recordErr := a.record(ctx, row); recordErr != nil {
		return operation.Logged(From(recordErr), a.id)
	}
	if f == nil {
		return nil
	}
	return operation.Recorded(f, a.id)
}

func (a *attempt) row() record.Attempt {
	k := a.kernel
	row := record.Attempt{
		Time: k.Now(), RequestID: a.id, Door: a.call.Caller.Door, Caller: a.call.Caller.Name, Tier: a.tier(), Action: a.op.Name,
		Outcome: record.OutcomeDone, Duration: k.Now().Sub(a.started), Session: k.Authority.Session,
	}
	if a.dryRun {
		row.Outcome = record.OutcomeDryRun
	}
	for _, path := range slices.Concat(a.paths, a.note.Paths) {
		row.Paths = append(row.Paths, k.Redact(path))
	}
	row.Message, row.Digest = k.Redact(a.note.Message), a.note.Digest
	return row
}

// record appends the row even if its caller has gone meanwhile.
func (a *attempt) record(ctx context.Context, row record.Attempt) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	err := a.kernel.Audit.Record(ctx, row, nil)
	if err != nil {
		a.kernel.Log.Error("a call was not recorded", "tool", a.op.Name, "request_id", a.id, "error", err)
	}
	return err
}

// Reject records a call that never came to its tool: too little of it could be read, or the server was too busy. name is "" if not
// even the tool is known.
func (k *Kernel) Reject(ctx context.Context, call operation.Call, name string, why *fault.Error) {
	a := k.begin("", operation.Operation{Name: cmp.Or(name, "tools/call"), Effect: operation.Write}, call, false)
	row := a.row()
	row.Outcome, row.Code, row.Message = record.OutcomeOf(why.Code), why.Code, k.Redact(why.Message)
	_ = a.record(ctx, row) // logged there
}
