package operation

import (
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Reason says which step of a call refused it.
type Reason string

// The reasons.
const (
	ReasonDisabled Reason = "disabled" // the toolset is not enabled
	ReasonTier     Reason = "tier"     // the tier is too low
	// ReasonWriting: the operator has not allowed to write, or to write in a dry run what cannot be tried; or the caller,
	// who was admitted when the call began, is not any more.
	ReasonWriting   Reason = "writing"
	ReasonApproval  Reason = "approval"  // yes is missing
	ReasonRules     Reason = "rules"     // the operator's rules about repositories and paths
	ReasonArguments Reason = "arguments" // they are malformed
	ReasonBusy      Reason = "busy"      // somebody else writes the same root
	ReasonTime      Reason = "time"      // the time limit
	ReasonSize      Reason = "size"      // the cap of the answer
	ReasonOurs      Reason = "ours"      // a fault of this program, or of its records
)

// Fault is a failure with what a toolset's contract says about it. Of the two, Code and Reason, one is set; of a
// toolset without a contract of its own, perhaps none.
type Fault struct {
	Code        string // the contract's; "" for what a step of the call refused
	Reason      Reason
	Details     map[string]any
	Suggestions []string
	General     *fault.Error // the failure in the program's own words: code, message, violations
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Code != "" {
		return fmt.Sprintf("[%s] %s", f.Code, f.General.Message)
	}
	return f.General.Error()
}

// Unwrap gives the failure in the program's own words.
func (f *Fault) Unwrap() error { return f.General }

// Told returns what happened, for answers that have no field for what the caller may do next: a pause says there when
// it may try again.
func (f *Fault) Told() string {
	if f.General.Code == fault.Paused && f.General.Next != "" {
		return f.General.Message + "; " + f.General.Next
	}
	return f.General.Message
}

// FaultOf returns err as a Fault. One that a handler has not made is of a time limit, or of ReasonOurs.
func FaultOf(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	general := fault.From(err)
	reason := ReasonOurs
	if general.Code == fault.Timeout {
		reason = ReasonTime
	}
	return &Fault{Reason: reason, General: general}
}

// Contracted returns an error as the way of a call takes it: one of the contract whose codes are given becomes a Fault,
// with the program's own code that general has for it. Others stay.
func Contracted[Code ~string](err error, general func(Code) fault.Code) error {
	e := fault.ContractErrorOf[Code](err)
	if e == nil {
		return err
	}
	return &Fault{
		Code: string(e.Code), Details: e.Details, Suggestions: e.Suggestions,
		General: fault.Wrap(e.Cause, general(e.Code), "%s", e.Message),
	}
}

// newFault makes the Fault of a step.
func newFault(reason Reason, code fault.Code, format string, args ...any) *Fault {
	return &Fault{Reason: reason, General: fault.New(code, format, args...)}
}

// byAuthority reports whether a call was refused because of who called, not because of what was asked.
func (f *Fault) byAuthority() bool {
	switch f.Reason {
	case ReasonDisabled, ReasonTier, ReasonWriting, ReasonApproval, ReasonRules:
		return true
	}
	return false
}

// requestError carries the request id to the renderers.
type requestError struct {
	err      error
	id       string
	recorded bool // the audit has a row with the id
}

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// Logged adds to err the id of the call that failed with it, as the log has it.
func Logged(err error, id string) error { return &requestError{err: err, id: id} }

// recorded adds to err the id of the attempt in the audit that failed with it.
func recorded(err error, id string) error { return &requestError{err: err, id: id, recorded: true} }

// RequestIDOf returns the id of the call that failed with err, as the log has it, or "".
func RequestIDOf(err error) string {
	var e *requestError
	if errors.As(err, &e) {
		return e.id
	}
	return ""
}

// AttemptIDOf returns the id under which the audit has the attempt that failed with err; "" if it has none: reads are
// not recorded, and a record may have failed.
func AttemptIDOf(err error) string {
	var e *requestError
	if errors.As(err, &e) && e.recorded {
		return e.id
	}
	return ""
}
