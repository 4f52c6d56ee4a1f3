package session

import (
	"context"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/content"
)

// Secrets finds credentials in texts. internal/base/content implements it.
type Secrets interface {
	// Secrets returns what looks like a credential in text. name is a label for the text.
	Secrets(ctx context.Context, name, text string) ([]content.Secret, error)
	// Redact replaces the values of our own tokens.
	Redact(text string) string
}

// searchTime bounds the search for credentials in one text.
const searchTime = 10 * time.Second

const withheldLine = "[withheld: looks like a secret]"

// cleaner makes text of agents fit to be kept.
type cleaner struct{ secrets Secrets }

// text returns at most limit bytes of what the agent wrote: without our tokens, without lines that look like they hold
// a credential (a private key takes everything after it along), and without hidden characters. What cannot be searched
// is withheld.
func (c cleaner) text(raw string, limit int) string {
	text := c.secrets.Redact(raw) // before it is cut: half a token is not found any more
	text = content.Clean(firstRunes(text, limit), limit)
	ctx, cancel := context.WithTimeout(context.Background(), searchTime)
	defer cancel()
	found, err := c.secrets.Secrets(ctx, "output", text)
	if err != nil {
		return "[withheld: could not be searched for secrets]"
	}
	lines := strings.Split(text, "\n")
	for _, s := range found {
		for line := min(max(s.Line, 1), len(lines)); line <= min(max(s.Line, s.LastLine), len(lines)); line++ {
			lines[line-1] = withheldLine
		}
		if len(found) >= content.MaxSecrets {
			return withheldLine // there may be more
		}
	}
	for i, line := range lines {
		if strings.Contains(line, "PRIVATE KEY-----") {
			lines = append(lines[:i], withheldLine) // its end may have been cut off
			break
		}
	}
	return strings.Join(lines, "\n")
}

// maxReason bounds why a session ended, in bytes.
const maxReason = 2000

// reason returns the reason for a session's end, on one line and without our tokens. What an agent wrote has been
// cleaned before.
func (c cleaner) reason(raw string) string {
	text := firstRunes(c.secrets.Redact(strings.Join(strings.Fields(raw), " ")), maxReason)
	return content.Clean(text, maxReason)
}

// name returns a name, such as a tool's: short, on one line, and without our tokens.
func (c cleaner) name(raw string) string {
	text := content.Clean(firstRunes(c.secrets.Redact(strings.Join(strings.Fields(raw), " ")), maxName), maxName)
	return text
}
