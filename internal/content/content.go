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

// position is where the text that follows before begins.
func position(before string) (line, column int) {
	line = 1 + strings.Count(before, "\n")
	column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return line, column
}
