package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// retry is the CLI's report of a failed request to its model that it repeats.
type retry struct {
	Attempt int    `json:"attempt"`
	Most    int    `json:"max_retries"`
	Status  int    `json:"error_status"` // 0: there was no answer
	Kind    string `json:"error"`
}

func (m message) retry() (r retry) {
	_ = json.Unmarshal(m.text, &r) // what cannot be read is left out
	return r
}

// answer describes the API's answer.
func (r retry) answer() string {
	text := "no answer"
	if r.Status > 0 {
		text = fmt.Sprintf("status %d", r.Status)
	}
	if r.Kind != "" && r.Kind != "unknown" {
		text += " (" + r.Kind + ")"
	}
	return text
}

// retries counts, for each answer of the API, how often it made the CLI ask again.
type retries map[string]int

// maxAnswers bounds how many different answers are distinguished.
const maxAnswers = 10

func (r retries) add(answer string) {
	if _, known := r[answer]; known || len(r) < maxAnswers {
		r[answer]++
	}
}

// answers returns the answers received, the most frequent first.
func (r retries) answers() []string {
	return slices.SortedFunc(maps.Keys(r),
		func(a, b string) int { return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a, b)) })
}

// text says what the model's API answered, the most frequent first; "" if it answered well.
func (r retries) text() string {
	if len(r) == 0 {
		return ""
	}
	answers := r.answers()
	for i, a := range answers {
		answers[i] = fmt.Sprintf("%s, %d times", a, r[a])
		if r[a] == 1 {
			answers[i] = a + ", once"
		}
	}
	return "the model's API answered with " + strings.Join(answers, "; ")
}

// cause explains why the model's API did not answer, by the most frequent of its answers; "" if that does not tell.
func (r retries) cause() string {
	means := map[string]string{
		"no answer": "the model's API cannot be reached", "status 429": "the rate limit of the model's API is reached",
		"status 529": "the model's API is overloaded",
	}
	if len(r) == 0 {
		return ""
	}
	answer, _, _ := strings.Cut(r.answers()[0], " (")
	return means[answer]
}

// credentialAdvice says what an operator does about an agent that is not signed in.
const credentialAdvice = "set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN as `claude setup-token` prints it"

// refusedCredential returns the end of a session whose credential the API does not take; nil for other failures. The
// CLI itself would ask for three minutes more.
func (r retry) refusedCredential() *outcome {
	if r.Status != http.StatusUnauthorized {
		return nil
	}
	return &outcome{sessions.StateFailed, "the model's API does not take the agent's credential (status 401); " +
		credentialAdvice}
}
