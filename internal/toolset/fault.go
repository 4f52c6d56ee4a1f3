package toolset

import (
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/internal/fault"
)

// Reason says which step of a call refused it.
type Reason string

// The reasons.
const (
	Disabled  Reason = "disabled"  // the toolset is not enabled
	Tier      Reason = "tier"      // the tier is too low
	NoWriting Reason = "writing"   // the operator has not allowed to write, or to write in a dry run what cannot be tried
	Approval  Reason = "approval"  // yes is missing
	Arguments Reason = "arguments" // they are malformed
	Busy      Reason = "busy"      // somebody else writes the same root
	TooLong   Reason = "time"      // the time limit
	TooLarge  Reason = "size"      // the cap of the answer
	Ours      Reason = "ours"      // a fault of this program, or of its records
)

// Fault is a failure with what a toolset's contract says about it. Of the two, Code and Reason, one is set.
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

// From returns err as a Fault. One that a handler has not made is of a time limit, or Ours.
func From(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	general := fault.From(err)
	reason := Ours
	if general.Code == fault.Timeout {
		reason = TooLong
	}
	return &Fault{Reason: reason, General: general}
}

// refuse makes the Fault of a step.
func refuse(reason Reason, code fault.Code, format string, args ...any) *Fault {
	return &Fault{Reason: reason, General: fault.New(code, format, args...)}
}

// byAuthority reports whether a call was refused because of who called, not because of what was asked.
func (f *Fault) byAuthority() bool {
	switch f.Reason {
	case Disabled, Tier, NoWriting, Approval:
		return true
	}
	return false
}
