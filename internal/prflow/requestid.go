package prflow

import "errors"

// requestError carries the request id to the renderers.
type requestError struct {
	err error
	id  string
}

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// RequestIDOf returns the id of the attempt that failed with err, or "".
func RequestIDOf(err error) string {
	var e *requestError
	if errors.As(err, &e) {
		return e.id
	}
	return ""
}

// WithRequestID is err with the id of the attempt in the audit that failed with it.
func WithRequestID(err error, id string) error { return &requestError{err, id} }
