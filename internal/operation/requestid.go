package operation

import "errors"

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
