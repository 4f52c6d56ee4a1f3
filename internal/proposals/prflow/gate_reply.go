package prflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// maxToldComments bounds how many comments a refusal names.
const maxToldComments = 20

// judgeReplies denies replies to comments that do not wait for one, and second replies to the same comment. The gate of
// revisions calls it.
func judgeReplies(r *request, rev *revision) (out []fault.Violation) {
	lines := rev.waiting()
	seen := map[string]bool{}
	for i, reply := range r.asked.Replies {
		at := fmt.Sprintf("replies[%d].comment", i)
		known := slices.ContainsFunc(lines, func(c gitprovider.LineComment) bool { return c.ID == reply.Comment })
		switch {
		case seen[reply.Comment]:
			out = append(out, invalid(at, fmt.Sprintf("`%s` names the comment %s a second time", at, quote(reply.Comment)),
				"answer each comment once"))
		case !known:
			out = append(out, invalid(at, fmt.Sprintf("`%s`: no comment on a line of #%d that waits for an answer has the id %s",
				at, rev.pr.Number, quote(reply.Comment)), rev.toldComments()))
		}
		seen[reply.Comment] = true
	}
	if r.asked.repliesOnly() && rev.asks == nil {
		out = append(out, fault.Violation{
			Code: fault.DuplicatePR, Path: "revises", Rule: "reviewed", Final: true,
			Message:    fmt.Sprintf("#%d has no review that waits for an answer", rev.pr.Number),
			Suggestion: "wait until somebody has reviewed or commented it",
		})
	}
	return out
}

// toldComments names the comments that may be answered.
func (s standing) toldComments() string {
	lines := s.waiting()
	if len(lines) == 0 {
		return "leave replies out: none waits; reply answers the review as a whole"
	}
	var told []string
	for _, c := range lines[:min(len(lines), maxToldComments)] {
		told = append(told, fmt.Sprintf("%s (%s:%d)", clean(c.ID, maxName), clean(c.Path, maxTitle), c.Line))
	}
	if more := len(lines) - maxToldComments; more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	return "these wait: " + strings.Join(told, ", ")
}
