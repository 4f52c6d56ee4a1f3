// This file has the error of the toolsets that fulfil a published contract: each names its failures by codes of its
// own, and says what the caller can do.

package fault

import (
	"errors"
	"fmt"
)

// ContractError is a failure in the words of one contract, whose codes have a type of their own: errors.As tells the
// errors of one contract from those of another.
type ContractError[Code ~string] struct {
	Code        Code
	Message     string
	Details     map[string]any // nil: none
	Suggestions []string       // what the caller can do, the best first
	Cause       error          // for logs only
}

// NewContractError makes an Error.
func NewContractError[Code ~string](code Code, format string, args ...any) *ContractError[Code] {
	return &ContractError[Code]{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *ContractError[Code]) Error() string { return fmt.Sprintf("[%s] %s", e.Code, e.Message) }

// Unwrap gives the cause.
func (e *ContractError[Code]) Unwrap() error { return e.Cause }

// With adds a detail to e, and returns e.
func (e *ContractError[Code]) With(key string, value any) *ContractError[Code] {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// Suggest adds to e what the caller can do, and returns e.
func (e *ContractError[Code]) Suggest(suggestions ...string) *ContractError[Code] {
	e.Suggestions = append(e.Suggestions, suggestions...)
	return e
}

// Because keeps the cause of e for logs, and returns e.
func (e *ContractError[Code]) Because(err error) *ContractError[Code] {
	e.Cause = err
	return e
}

// ContractErrorOf returns the failure of the contract that err is or wraps; nil if there is none.
func ContractErrorOf[Code ~string](err error) *ContractError[Code] {
	var e *ContractError[Code]
	if errors.As(err, &e) {
		return e
	}
	return nil
}
