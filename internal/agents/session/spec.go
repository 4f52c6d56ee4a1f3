package session

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Spec describes the session to run. All of it comes from the operator, except Handoff.
type Spec struct {
	ID      string // "" for a new one
	Tier    gitprovider.Tier
	Trigger sessions.Trigger
	Starter record.Actor // the person who started it; otherwise the schedule, or the session that handed over
	Note    string       // the operator's words to the agent, at most MaxNote bytes
	Parent  string       // the session that handed over; "" for none
	Handoff *sessions.Handoff

	// Scheduled says that no person started it, nor the session that handed over to it: Limits.ScheduledUSD applies.
	Scheduled bool
	// Ceiling caps the tier of the session and of those that it escalates to, beside Settings.MaxTier; 0 caps nothing.
	Ceiling gitprovider.Tier
	// Admit is asked, with the session's id, when nothing else runs and before anything has begun. Its error is that of
	// the start, and nothing starts. It must not call the Supervisor. nil admits.
	Admit func(ctx context.Context, id string) error

	processes *processes // keeps the session's processes from others; nil for nothing
}

// MaxNote bounds the operator's words, in bytes.
const MaxNote = 8 << 10
