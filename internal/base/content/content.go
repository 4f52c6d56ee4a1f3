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
	"slices"
	"unicode/utf8"
)

// lineIndex tells positions in one text many times.
type lineIndex struct {
	text   string
	starts []int // of the lines
}

func newLineIndex(text string) lineIndex {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return lineIndex{text, starts}
}

// line returns the number of the line that has an offset.
func (x lineIndex) line(at int) int {
	line, found := slices.BinarySearch(x.starts, at)
	if found {
		line++
	}
	return line
}

// position returns the line and the column of an offset.
func (x lineIndex) position(at int) (line, column int) {
	line = x.line(at)
	return line, 1 + utf8.RuneCountInString(x.text[x.starts[line-1]:at])
}
