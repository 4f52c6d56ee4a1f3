package handler

import (
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Env holds what handlers need from their process.
type Env struct {
	Log    *slog.Logger
	Redact func(text string) string // keeps the values of our own tokens out of what a handler renders
	// Hide keeps what looks like a secret of anybody out of what a refusal repeats of its request; nil: nothing does.
	Hide func(text string) string
	// Redaction returns a number that changes whenever Redact begins to remove something else; nil where it is not known.
	Redaction func() int64
	Now       func() time.Time
	NewID     func() string // request ids
}

// Settings is what the operator permits this server to do.
type Settings struct {
	Version string
	Tier    gitprovider.Tier
	Rules   func() Rules // as they are now
	// PublicURL is the address at which clients reach the server, base path included; "" if not configured.
	PublicURL string
}

// Rules holds the operator's rules for the whole server at one time.
type Rules struct {
	DryRun   bool
	ReadOnly string // why no proposals are taken, or ""
	Problem  string // why the rules cannot be known, or "": new sign-ins are refused then
}

// Bounds, in runes, of text that others wrote.
const (
	MaxLine      = 300
	MaxMessage   = 5000
	MaxAgentText = 64 << 10 // what is recorded of an agent's text is shorter
)

// Text prepares a text of others for display: without our tokens and invisible characters, and bounded.
func (e Env) Text(text string, runes int) string {
	out := content.Clean(e.Redact(text), runes)
	return out
}

// Line returns a line of such text.
func (e Env) Line(text string) string { return e.Text(text, MaxLine) }

// Message returns a message of such text.
func (e Env) Message(text string) string { return e.Text(text, MaxMessage) }

// CleanLine prepares a line of text of others for the record: only invisible characters are removed.
func CleanLine(text string) string {
	out := content.Clean(text, MaxLine)
	return out
}
