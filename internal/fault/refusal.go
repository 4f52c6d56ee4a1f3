package fault

import (
	"fmt"
	"strings"
)

// maxSummary is how many violations the message of a refusal repeats; all of them are in Violations.
const maxSummary = 4

// Refusal makes one error of all violations, at least one. They are in the order in which they were found, so the first one's code stands for the
// whole: what the caller must change first.
func Refusal(violations []Violation) *Error {
	first := violations[0]
	if len(violations) == 1 {
		return &Error{Code: first.Code, Message: first.Message, Violations: violations}
	}
	var texts []string
	for _, v := range violations[:min(len(violations), maxSummary)] {
		texts = append(texts, v.Message)
	}
	if more := len(violations) - maxSummary; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return &Error{
		Code:       first.Code,
		Message:    fmt.Sprintf("%d problems: %s", len(violations), strings.Join(texts, "; ")),
		Violations: violations,
	}
}
