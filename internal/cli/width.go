package cli

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/width"
)

const (
	zeroWidthJoiner = '\u200d'
	emojiVariant    = '\ufe0f' // has the character before it shown as a picture, two columns wide
	leftToRightMark = "\u200e"
)

// runeWidth returns the columns that a character takes on a terminal. It may count emoji that are joined to one picture
// as many: terminals differ there, and a row that is counted too wide still fits.
func runeWidth(r rune) int {
	switch {
	case r >= ' ' && r < 0x7f: // most texts are ASCII
		return 1
	case r < ' ' || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r >= 0x1160 && r <= 0x11ff: // and joined Hangul
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// displayWidth returns the columns that a text takes on a terminal.
func displayWidth(text string) (sum int) {
	for part := range clusters(text) {
		sum += clusterWidth(part)
	}
	return sum
}

func clusterWidth(part string) (sum int) {
	for _, r := range part {
		if r == emojiVariant && sum == 1 {
			sum++
		}
		sum += runeWidth(r)
	}
	return sum
}

// clusters yields the parts of a text that are not to be separated: a character with what is written onto it.
func clusters(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, joined, flags := 0, false, 0
		for at, r := range text {
			isFlag := r >= 0x1f1e6 && r <= 0x1f1ff // letters that are a flag in pairs
			onto := runeWidth(r) == 0 && r >= ' ' || r >= 0x1f3fb && r <= 0x1f3ff || joined || isFlag && flags%2 == 1
			if at > start && !onto {
				if !yield(text[start:at]) {
					return
				}
				start = at
			}
			if joined = r == zeroWidthJoiner; isFlag {
				flags++
			} else {
				flags = 0
			}
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}

// cutTo shortens a text to at most so many columns, and shows that it did.
func cutTo(text string, columns int) string {
	if columns < 1 || displayWidth(text) <= columns {
		return text
	}
	head, _ := splitAt(text, columns-1)
	return strings.TrimRight(head, " ") + "…"
}

// splitAt divides a text after at most so many columns.
func splitAt(text string, columns int) (head, rest string) {
	end, used := 0, 0
	for part := range clusters(text) {
		if used += clusterWidth(part); used > columns {
			break
		}
		end += len(part)
	}
	return text[:end], text[end:]
}

// fold breaks a text into lines of at most so many columns, between words where it can.
func fold(text string, columns int) (lines []string) {
	rest := text
	for columns > 0 && displayWidth(rest) > columns {
		head, tail := splitAt(rest, columns)
		if head == "" { // one character is wider
			break
		}
		if at := strings.LastIndexByte(head, ' '); tail[0] != ' ' && at > 0 {
			head, tail = rest[:at], rest[at:]
		}
		lines = append(lines, strings.TrimRight(head, " "))
		rest = strings.TrimLeft(tail, " ")
	}
	return append(lines, rest)
}

// hasRightToLeft reports whether a text has letters that are written from right to left.
func hasRightToLeft(text string) bool {
	for _, r := range text {
		if r < 0x590 {
			continue
		}
		if p, _ := bidi.LookupRune(r); p.Class() == bidi.R || p.Class() == bidi.AL {
			return true
		}
	}
	return false
}
