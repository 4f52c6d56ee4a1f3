package fault

// Wire is the JSON form of an Error that MCP and REST share ("error" object of the contract).
type Wire struct {
	Code              Code        `json:"code"`
	Message           string      `json:"message"`
	Retryable         bool        `json:"retryable"`
	RetryAfterSeconds int         `json:"retry_after_seconds,omitempty"` // rounded up
	Violations        []Violation `json:"violations,omitempty"`
	ExistingPR        *ExistingPR `json:"existing_pr,omitempty"`
	RequestID         string      `json:"request_id"`
}

// Wire renders the error for a client. The cause stays behind.
func (e *Error) Wire(requestID string) Wire {
	seconds := int(e.RetryAfter.Seconds())
	if e.RetryAfter > 0 && float64(seconds) < e.RetryAfter.Seconds() {
		seconds++
	}
	return Wire{
		Code: e.Code, Message: e.Message, Retryable: e.Retryable(), RetryAfterSeconds: seconds,
		Violations: e.Violations, ExistingPR: e.Existing, RequestID: requestID,
	}
}
