package session

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// outcome says how and why a session ended.
type outcome struct {
	state  sessions.State
	reason string
}

// addProblems adds what went wrong when the session's processes were ended.
func (v *outcome) addProblems(end processtree.End) {
	var problems []string
	if end.ReaperLost {
		problems = append(problems,
			"the process that keeps the session's processes together was killed, so some may have been missed")
	}
	if len(end.Remaining) > 0 {
		problems = append(problems,
			fmt.Sprintf("processes %v do not end, and no session can start until they have; the operator has to end them",
				end.Remaining))
	}
	if len(problems) == 0 {
		return
	}
	if v.state == sessions.StateSucceeded {
		v.state = sessions.StateFailed
	}
	if v.reason != "" {
		problems = append([]string{v.reason}, problems...)
	}
	v.reason = strings.Join(problems, "; ")
}

// addRetries adds how the model's API kept a session that did not succeed waiting.
func (v *outcome) addRetries(r retries) {
	text := r.text()
	if v.state == sessions.StateSucceeded || text == "" {
		return
	}
	v.reason += "; " + text
}

// outcomeOf returns the outcome of a session whose CLI exited by itself.
func (c *cliRun) outcomeOf(exit processtree.Exit) *outcome {
	m, record := c.output.result, c.output.record
	code := exit.Code
	switch {
	case m == nil && code == -1:
		return &outcome{sessions.StateFailed, fmt.Sprintf("claude ended without a result: %s", exit.Text)}
	case m == nil:
		return &outcome{sessions.StateFailed, fmt.Sprintf("claude exited with code %d without a result", code)}
	case m.Subtype == "error_max_turns":
		return &outcome{sessions.StateLimit, fmt.Sprintf("it reached the limit of %d turns (CLAUDEOPS_MAX_TURNS)",
			c.limits.Turns)}
	case m.Subtype == "error_max_budget_usd":
		return &outcome{sessions.StateLimit, fmt.Sprintf("it cost %s and reached the limit of %s", record.Cost(),
			c.limits.cost())}
	case !record.Connected:
		return &outcome{sessions.StateFailed, "claude never connected to the claudeops MCP server"}
	case m.IsError:
		return &outcome{sessions.StateFailed, c.cliError(m)}
	case code != 0:
		return &outcome{sessions.StateFailed, fmt.Sprintf("claude exited with code %d", code)}
	}
	return &outcome{sessions.StateSucceeded, ""}
}

// cliError returns the CLI's own error, after what that means where it is known.
func (c *cliRun) cliError(m *message) string {
	text := m.Result
	if text == "" {
		text = strings.Join(append([]string{m.Subtype}, m.Errors...), ": ")
	}
	reported := "claude reported an error: " + c.output.clean.text(text, 500)
	switch cause := c.output.retries.cause(); {
	case strings.Contains(text, "/login"):
		return "claude is not logged in: " + credentialAdvice + "; " + reported
	case cause != "":
		return cause + "; " + reported
	}
	return reported
}
