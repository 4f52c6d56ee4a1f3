package content

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON returns JSON with every character that Hidden would report written as an escape (\u202e), so that nothing
// hides in it on a terminal or in a log, and its meaning is unchanged. In a text that is not JSON the escapes are
// literal. Time is linear in the length of text.
func EscapeJSON(text []byte) []byte {
	plain := true
	for _, b := range text {
		plain = plain && (b >= ' ' && b < 0x7f || b == '\n' || b == '\t')
	}
	if plain {
		return text
	}
	var out bytes.Buffer
	out.Grow(len(text))
	walk(string(text), func(r rune, hidden bool) bool {
		switch {
		case !hidden:
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		return true
	})
	return out.Bytes()
}

// CleanAll is Clean without a limit.
func CleanAll(text string) string { return Clean(text, utf8.RuneCountInString(text)) }
