// Package contract has the error of the toolsets that fulfil a published contract: each names its failures by codes of
// its own, and says what the caller can do.
package contract

import (
	"errors"
	"fmt"
)

// Error is a failure in the words of one contract, whose codes have a type of their own: errors.As tells the errors of
// one contract from those of another.
type Error[Code ~string] struct {
	Code        Code
	Message     string
	Details     map[string]any // nil: none
	Suggestions []string       // what the caller can do, the best first
	Cause       error          // for logs only
}

// New makes an Error.
func New[Code ~string](code Code, format string, args ...any) *Error[Code] {
	return &Error[Code]{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error[Code]) Error() string { return fmt.Sprintf("[%s] %s", e.Code, e.Message) }

// Unwrap gives the cause.
func (e *Error[Code]) Unwrap() error { return e.Cause }

// With adds a detail to e, and returns e.
func (e *Error[Code]) With(key string, value any) *Error[Code] {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// Suggest adds to e what the caller can do, and returns e.
func (e *Error[Code]) Suggest(suggestions ...string) *Error[Code] {
	e.Suggestions = append(e.Suggestions, suggestions...)
	return e
}

// Because keeps the cause of e for logs, and returns e.
func (e *Error[Code]) Because(err error) *Error[Code] {
	e.Cause = err
	return e
}

// Of returns the failure of the contract that err is or wraps; nil if there is none.
func Of[Code ~string](err error) *Error[Code] {
	var e *Error[Code]
	if errors.As(err, &e) {
		return e
	}
	return nil
}
