package record

import (
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// MaxPauseReason bounds why something was paused, in bytes.
const MaxPauseReason = 300

// Pause stops what agents and schedules do, until its end or until a person resumes it.
type Pause struct {
	Owner, Repo string // at whatever provider; both "" for everything
	Why         string // in the words of the person
	By          string
	Since       time.Time
	Until       time.Time // zero: until a person resumes
}

// Scope returns owner/name, or "everything".
func (p Pause) Scope() string {
	if p.Owner == "" {
		return "everything"
	}
	return p.Owner + "/" + p.Repo
}

// Fault returns the refusal of an act at a time while the pause lasts. Its Next says when the caller may try again.
func (p Pause) Fault(now time.Time) *fault.Error {
	e := fault.New(fault.Paused, "%s is paused by %s since %s: %q",
		p.Scope(), p.By, p.Since.UTC().Format(time.RFC3339), p.Why)
	if p.Until.IsZero() {
		e.Next = "do not retry before a person has resumed it (claudeops resume); report what you wanted to do"
		return e
	}
	e.RetryAfter = p.Until.Sub(now)
	e.Next = "do not retry before " + p.Until.UTC().Format(time.RFC3339) + "; report what you wanted to do"
	return e
}

// Underway counts what had begun to write when a pause began, and has not ended.
type Underway struct {
	Writes   int // proposals with their files reserved, and tools that write
	Scripts  int
	Sessions int
}
