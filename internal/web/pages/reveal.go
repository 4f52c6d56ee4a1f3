package pages

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/content"
)

// Reveal shows what others would hide: each hidden character is written as its code point, and what is beyond maxRunes
// is counted instead of shown. It is for texts that a person has to judge, such as the lines of a diff.
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
