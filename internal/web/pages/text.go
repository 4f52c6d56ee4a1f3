package pages

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/claudeops/claudeops/internal/content"
)

// MaxItems is how many entries of a list of names a page shows.
const MaxItems = 20

// List is a list that is shown in part.
type List struct {
	Items []string
	More  int // how many are left out
}

// ListOf shows the first items, each made fit by show.
func ListOf(items []string, show func(string) string) List {
	var l List
	for i, item := range items {
		if i == MaxItems {
			l.More = len(items) - i
			break
		}
		l.Items = append(l.Items, show(item))
	}
	return l
}

// Reveal shows what others would hide: each hidden character is written as its code point, and what is beyond maxRunes is
// counted instead of shown. It is for texts that a person has to judge, such as the lines of a diff.
func Reveal(line string, maxRunes int) string {
	runes := 0
	for at := range line {
		if runes == maxRunes {
			rest := strings.ToValidUTF8(line[at:], "\uFFFD")
			return Reveal(line[:at], maxRunes) + fmt.Sprintf(" … %d more characters", len([]rune(rest)))
		}
		runes++
	}
	if content.Clean(line, len(line)+1) == line {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		hidden := content.Clean(string(r), 2) != string(r)
		if r != '\t' && (hidden || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// WebAddress returns an absolute http or https address without user information as it may be linked to, or "".
func WebAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Opaque != "" {
		return ""
	}
	if text := u.String(); content.Clean(text, 2000) == text {
		return text
	}
	return ""
}

// When is a moment as a page shows it.
type When struct{ ISO, Text, Ago string }

// WhenOf is t seen from now; the zero When for the zero time.
func WhenOf(t, now time.Time) When {
	if t.IsZero() {
		return When{}
	}
	t = t.UTC()
	return When{ISO: t.Format(time.RFC3339), Text: t.Format("2006-01-02 15:04:05") + " UTC", Ago: ago(now.Sub(t))}
}

func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in the future"
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		return count(int(d.Hours()), "hour")
	}
	return count(int(d.Hours()/24), "day")
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit + " ago"
	}
	return fmt.Sprintf("%d %ss ago", n, unit)
}
