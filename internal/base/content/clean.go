package content

import (
	"strings"
	"unicode/utf8"
)

// ellipsis marks where Clean cut.
const ellipsis = "…"

// Clean makes text that other people wrote fit to be shown: whatever Hidden would report is removed, each byte that is
// not valid UTF-8 becomes U+FFFD, and text of more than maxRunes runes is cut to at most maxRunes, an ellipsis at its
// end included. A maxRunes below 1 leaves nothing.
//
// The result is valid UTF-8 of which Hidden reports nothing, and cleaning it again changes nothing. Time is linear in
// the length of text. Cleaned text is still untrusted: it may lie or instruct, it just cannot hide.
func Clean(text string, maxRunes int) string {
	cleaned, length := reveal(text)
	if length > maxRunes {
		cleaned = cut(cleaned, maxRunes)
	}
	return cleaned
}

// reveal returns text without its hidden characters, and the number of runes that are left.
func reveal(text string) (string, int) {
	var b strings.Builder
	b.Grow(len(text))
	length := 0
	walk(text, func(r rune, hidden bool) bool {
		if !hidden {
			b.WriteRune(r)
			length++
		}
		return true
	})
	return b.String(), length
}

// cut keeps the first runes of text, which is valid UTF-8 of more than limit runes, and ends them with an ellipsis.
func cut(text string, limit int) string {
	if limit < 1 {
		return ""
	}
	end := 0
	for range limit - 1 {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	// A cut through an emoji sequence or a line end leaves a joiner, tag or carriage return that is hidden now.
	kept, _ := reveal(text[:end])
	return kept + ellipsis
}
