package handler

import (
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Env is what handlers take from the process that serves.
type Env struct {
	Log    *slog.Logger
	Redact func(text string) string // keeps the values of our own tokens out of what a handler renders
	// Hide keeps what looks like a secret of anybody out of what a refusal repeats of its request; nil: nothing does.
	Hide func(text string) string
	// Redaction is a number that changes whenever Redact begins to keep out something else; nil where nobody knows.
	Redaction func() int64
	Now       func() time.Time
	NewID     func() string // request ids
}

// Settings is what the operator lets this server do.
type Settings struct {
	Version string
	Tier    gitprovider.Tier
	Rules   func() Rules // as they are now
	// PublicURL is where clients reach the server, base path included; "" if nobody says.
	PublicURL string
}

// Rules are what the operator's rules say of the whole server at one time.
type Rules struct {
	DryRun   bool
	ReadOnly string // why no proposals are taken, or ""
	Problem  string // why the rules cannot be known, or "": nobody signs in anew
}

// Bounds, in runes, of text that others wrote.
const (
	MaxLine      = 300
	MaxMessage   = 5000
	MaxAgentText = 64 << 10 // what is recorded of an agent's text is shorter
)

// Text is what others wrote as it may be shown: without our tokens, without what nobody can see, and bounded.
func (e Env) Text(text string, runes int) string {
	out := content.Clean(e.Redact(text), runes)
	return out
}

// Line is a line of such text.
func (e Env) Line(text string) string { return e.Text(text, MaxLine) }

// Message is a message of such text.
func (e Env) Message(text string) string { return e.Text(text, MaxMessage) }

// CleanLine is a line of text that others wrote, for the record: nothing is taken out but what nobody can see.
func CleanLine(text string) string {
	out := content.Clean(text, MaxLine)
	return out
}
