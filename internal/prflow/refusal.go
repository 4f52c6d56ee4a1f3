package prflow

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
)

// maxSummary is how many violations the message of a refusal repeats; all of them are in Violations.
const maxSummary = 4

// refusal makes one error of all violations. They are in the order of the gates, so the first one's code stands for the
// whole: what the caller must change first.
func refusal(violations []fault.Violation) *fault.Error {
	first := violations[0]
	if len(violations) == 1 {
		return &fault.Error{Code: first.Code, Message: first.Message, Violations: violations}
	}
	var texts []string
	for _, v := range violations[:min(len(violations), maxSummary)] {
		texts = append(texts, v.Message)
	}
	if more := len(violations) - maxSummary; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return &fault.Error{
		Code:       first.Code,
		Message:    fmt.Sprintf("%d problems: %s", len(violations), strings.Join(texts, "; ")),
		Violations: violations,
	}
}
