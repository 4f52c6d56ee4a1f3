package forge

import (
	"strings"
	"unicode"
)

// maxQuoted bounds, in characters, what a message quotes of a forge's words.
const maxQuoted = 240

// Clean makes text of others fit for a message: printable, on one line, capped.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " "))
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > maxQuoted {
		return string(runes[:maxQuoted]) + "..."
	}
	return string(runes)
}

// Mentions reports whether a forge's words hold one of the phrases, which are in lower case. Phrases choose the advice
// of a message; none decides alone whether something was done.
func Mentions(said string, phrases ...string) bool {
	said = strings.ToLower(said)
	for _, phrase := range phrases {
		if strings.Contains(said, phrase) {
			return true
		}
	}
	return false
}
