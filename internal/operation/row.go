package operation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// end records what has to be, and gives an error its request id.
func (a *attempt) end(ctx context.Context, err error) error {
	if a.op.ForPeople() {
		return a.endAct(ctx, err)
	}
	a.kernel.Log.Debug("a tool was called", "tool", a.op.Name, "request_id", a.call.ID, "duration",
		a.kernel.Now().Sub(a.started), "failed", err != nil)
	reads := a.op.Effect == Read && a.note.empty() // such calls leave no row
	if err == nil && (reads || a.records != nil) {
		return nil
	}
	row := a.row()
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
	row := a.failed(err)
	row.Repeats = row.Door == record.DoorWeb || row.Door == record.DoorREST
	if a.append(ctx, row, f) != nil {
		return said
	}
	return recorded(said, a.call.ID)
}

// Withheld stands in records for what looked like a secret.
const Withheld = content.Withheld

// redacted is a failure without the values of our own tokens, and with what its caller does next.
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
		return a.record(ctx, row)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return a.logged(a.records(ctx, f.General))
}

// failed is the row of a call that came to nothing.
func (a *attempt) failed(err error) record.Attempt {
	e, row := fault.From(err), a.row()
	row.Outcome, row.Code, row.Message = record.OutcomeOf(e.Code), e.Code, a.kernel.hide(e.Message)
	return row
}

// done is Call.Done.
func (a *attempt) done(message string) record.Attempt {
	row := a.row()
	row.Outcome, row.Message = record.OutcomeDone, a.kernel.Redact(message)
	return row
}

func (a *attempt) row() record.Attempt {
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

// record appends the row even if its caller has gone meanwhile.
func (a *attempt) record(ctx context.Context, row record.Attempt) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return a.logged(a.kernel.Audit.Record(ctx, row, nil))
}

// logged is an error of recording, which the log has.
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
	a := k.begin("", Operation{Name: cmp.Or(name, "tools/call"), Effect: Write}, steps{}, call)
	_ = a.record(ctx, a.failed(why)) // logged there
}
