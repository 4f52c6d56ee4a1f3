// Package content judges text: what a reviewer cannot see in it, and what must never be published with it.
//
// It knows nothing of repositories or pull requests. Gate 5 asks it about file contents, titles and bodies; whatever
// shows text that other people wrote passes it through Clean; whatever logs or reports an error passes it through
// Scanner.Redact.
//
// Positions are 1-based. A line ends at "\n"; a column counts runes, not bytes. A byte that is not part of valid UTF-8
// counts as one rune.
package content

import (
	"strings"
	"unicode/utf8"
)

// InvalidUTF8 finds the first byte of b that is not part of valid UTF-8. Surrogates and over-long forms are invalid, as
// in the Unicode Standard, section 3.9 (table 3-7).
func InvalidUTF8(b []byte) (line, column int, found bool) {
	if utf8.Valid(b) {
		return 0, 0, false
	}
	for at := 0; at < len(b); {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			line, column = position(string(b[:at]))
			return line, column, true
		}
		at += size
	}
	return 0, 0, false
}

// position is where the text that follows before begins.
func position(before string) (line, column int) {
	line = 1 + strings.Count(before, "\n")
	column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return line, column
}
