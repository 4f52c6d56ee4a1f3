package content

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// piece is a word that may be one part of a credential.
type piece struct {
	line  int  // where its line begins
	whole span // the word
	bare  span // without punctuation at its ends, such as a hyphen at the end of a line
	mark  bool // it only counts or marks its line: "1.", "b)", "[x]", "12 |"
}

// maxColumns limits the columns of a text that are searched for pieces that stand below each other.
const maxColumns = 8

// flow gives the pieces of a text that only white space, punctuation, marks of lists and rules part, in runs of two and
// more: words over a line break, and strings in a row.
func (l layer) flow() [][]piece {
	var runs [][]piece
	var run []piece
	end := func() {
		if len(run) > 1 {
			runs = append(runs, slices.Clip(run))
			run = run[len(run):] // the rest of the array
			return
		}
		run = run[:0]
	}
	last, newLine := 0, false // where the word before ends, and whether a line ended between it and a mark
	for word := range words(l.text) {
		between := l.text[last:word.whole.start]
		last = word.whole.end
		if word.mark {
			newLine = newLine || strings.Contains(between, "\n")
			continue
		}
		if len(run) > 0 && !newLine && !joins(between) {
			end()
		}
		newLine = false
		if word.cutShort(l.text) {
			end()
			continue
		}
		if l.text[word.whole.end-1] == ':' {
			end() // a name begins
		}
		run = append(run, word)
	}
	end()
	return runs
}

// columns gives the pieces that stand below each other in lines one after the other, in runs of two and more: the first
// words, the last ones, and those of the columns of a table. Words of prose end a run.
func (l layer) columns() [][]piece {
	var runs [][]piece
	var open [maxColumns][]piece
	end := func(column int) {
		if len(open[column]) > 1 {
			runs = append(runs, open[column])
		}
		open[column] = nil
	}
	line, seen, cell := -1, 0, 0
	var last [maxColumns]piece
	var filled [maxColumns]bool
	endLine := func() {
		for column := range maxColumns {
			if !filled[column] || plain(l.text[last[column].bare.start:last[column].bare.end]) {
				end(column)
				continue
			}
			open[column] = append(open[column], last[column])
		}
		filled = [maxColumns]bool{}
	}
	for word := range words(l.text) {
		if word.mark || word.cutShort(l.text) {
			continue
		}
		if word.line != line {
			if line >= 0 {
				endLine()
			}
			line, seen, cell = word.line, word.line, 1
			last[0], filled[0] = word, true
		}
		value := word.value(l.text)
		last[1], filled[1] = value, true
		cell += strings.Count(l.text[seen:word.whole.start], "|")
		seen = word.whole.end
		if cell > 1 && cell < maxColumns {
			last[cell], filled[cell] = value, true
		}
	}
	if line >= 0 {
		endLine()
	}
	for column := range maxColumns {
		end(column)
	}
	return runs
}

// cutShort says whether a word is the beginning of a sample with dots for the rest, such as "ghp_...".
func (p piece) cutShort(text string) bool {
	const most = 12 // characters
	return strings.HasSuffix(text[p.whole.start:p.whole.end], "...") && p.bare.end-p.bare.start <= most
}

// value returns the part of a word behind its last equals sign or colon.
func (p piece) value(text string) piece {
	word := text[p.bare.start:p.bare.end]
	if at := strings.LastIndexAny(word, "=:") + 1; at > 0 {
		p.bare.start += at
		p.whole.start = p.bare.start
	}
	return p
}

// words calls yield with each word of a text that may be a piece.
func words(text string) func(yield func(piece) bool) {
	return func(yield func(piece) bool) {
		line, first := 0, true
		for at := 0; at < len(text); {
			if text[at] == '\n' {
				line, first = at+1, true
			}
			if !inWord(text[at]) {
				at++
				continue
			}
			end := at
			for end < len(text) && inWord(text[end]) {
				end++
			}
			p := piece{line: line, whole: span{at, end}, bare: span{at, end}}
			for p.bare.start < end && !isAlphanumeric(text[p.bare.start]) && text[p.bare.start] != '_' {
				p.bare.start++
			}
			for p.bare.end > p.bare.start && !isAlphanumeric(text[p.bare.end-1]) && text[p.bare.end-1] != '_' {
				p.bare.end--
			}
			at = end
			if p.bare.start == p.bare.end {
				continue
			}
			p.mark = first && isMark(text[p.whole.start:p.whole.end], text[end:])
			first = first && p.mark
			if !yield(p) {
				return
			}
		}
	}
}

// inWord says whether c is a character of words: of credentials, and of what stands inside of some.
func inWord(c byte) bool {
	switch c {
	case '_', '-', '=', '.', ':', '/', '+', '@', '~', '%', '$':
		return true
	}
	return isAlphanumeric(c)
}

// isMark says whether the first word of a line counts or marks it.
func isMark(word, rest string) bool {
	const most = 3 // digits
	number := strings.TrimRight(word, ".:")
	if len(word)-len(number) > 1 || rest == "" || strings.IndexByte(" \t)]|", rest[0]) < 0 {
		return false
	}
	return len(number) == 1 || len(number) <= most && strings.Trim(number, "0123456789") == ""
}

// joins says whether what stands between two words may stand inside of a credential that is written in parts.
func joins(between string) bool {
	newLine, operator, space := false, false, false
	for _, r := range between {
		switch {
		case r == '\n':
			newLine = true
		case r == ' ', r == '\t', r == '\r':
			space = true
		case strings.ContainsRune("\"'`+|", r):
			operator = true
		case unicode.IsLetter(r):
			return false
		}
	}
	return newLine || operator || !space && len(between) <= utf8.UTFMax && strings.Trim(between, "*~\\_") == ""
}

// plain says whether a piece reads as words and numbers, such as "Node-07", rather than as a part of a credential.
func plain(text string) bool {
	const capitals = 8 // characters
	for word := range wordsIn(text) {
		if !ordinary(word) || len(word) >= capitals && strings.ToUpper(word) == word {
			return false
		}
	}
	return true
}

// wordy says whether half of what was put together is words.
func wordy(text string) bool {
	const least = 4 // characters
	length := 0
	for word := range wordsIn(text) {
		if len(word) >= least && ordinary(word) {
			length += len(word)
		}
	}
	return 2*length >= len(text)
}

// wordsIn gives the letters and digits of a text that stand together.
func wordsIn(text string) func(yield func(word string) bool) {
	return strings.FieldsFuncSeq(text, func(r rune) bool { return r >= utf8.RuneSelf || !isAlphanumeric(byte(r)) })
}

// ordinary says whether a word is short, or letters and numbers as in prose and names.
func ordinary(word string) bool {
	const least = 4 // characters
	mixed := strings.ToUpper(word) != word && strings.ToLower(word[1:]) != word[1:]
	return len(word) < least || !mixed && isWord(word)
}
