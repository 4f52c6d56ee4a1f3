package fault

import (
	"fmt"
	"slices"
	"strings"
)

// maxSummary limits the violations that the message of a refusal repeats; all of them are in Violations.
const maxSummary = 4

// Refusal makes one error of all violations, at least one: those that the caller cannot correct first, else in the
// order in which they were found. The first one's code stands for the whole.
func Refusal(violations []Violation) *Error {
	violations = slices.Clone(violations)
	slices.SortStableFunc(violations, func(a, b Violation) int { return rank(a) - rank(b) })
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

func rank(v Violation) int {
	if v.Final {
		return 0
	}
	return 1
}
