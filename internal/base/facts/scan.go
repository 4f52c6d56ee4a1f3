package facts

import (
	"iter"
	"strings"
	"sync"
	"unicode/utf8"
)

// byteSet is a set of characters of ASCII.
type byteSet [256]bool

func newByteSet(characters string) *byteSet {
	var set byteSet
	for i := range len(characters) {
		set[characters[i]] = true
	}
	return &set
}

// withSpace adds space and control characters.
func (s *byteSet) withSpace() *byteSet {
	for c := range ' ' + 1 {
		s[c] = true
	}
	return s
}

// inverted gives the characters that are not in the set.
func (s *byteSet) inverted() *byteSet {
	var out byteSet
	for i, in := range s {
		out[i] = !in
	}
	return &out
}

// signs is a set of characters of a line, as far as one has to be there before a costly look is worth it.
type signs uint16

const (
	hasStop     signs = 1 << iota // .
	hasColon                      // :
	hasOpening                    // (
	hasBracket                    // [
	hasLess                       // <
	hasBang                       // !
	hasTick                       // `
	hasQuote                      // " or '
	hasMark                       // - / |
	hasEscape                     // what may begin an escape, or is not ASCII: see textscan.Undisguise
	hasBack                       // \
	hasComma                      // ;
	endsEncoded                   // what base64 and hexadecimal digits do not have
)

// has says whether a line has one of some characters.
func (s signs) has(any signs) bool { return s&any != 0 }

// lineBytes gives the signs of each character.
var lineBytes = sync.OnceValue(func() *[256]signs { //nolint:gochecknoglobals // made once, never changed
	var table [256]signs
	for sign, characters := range map[signs]string{hasStop: ".", hasColon: ":", hasOpening: "(", hasBracket: "[",
		hasLess: "<", hasBang: "!", hasTick: "`", hasQuote: "\"'", hasMark: "-/|", hasEscape: "%\\&", hasBack: "\\",
		hasComma: ";"} {
		for i := range len(characters) {
			table[characters[i]] |= sign
		}
	}
	for c, ends := range encodingEnds() {
		if ends {
			table[c] |= endsEncoded
		}
	}
	for c := utf8.RuneSelf; c < len(table); c++ {
		table[c] |= hasEscape
	}
	return &table
})

// signsOf gives the signs of a line.
func signsOf(line string) (s signs) {
	table := lineBytes()
	for i := range len(line) {
		s |= table[line[i]]
	}
	return s
}

// trimBlank takes spaces and tabs off the beginning of a text.
func trimBlank(text string) string {
	at := 0
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	return text[at:]
}

// trimBlankRight takes spaces and tabs off the end of a text.
func trimBlankRight(text string) string {
	end := len(text)
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '\t') {
		end--
	}
	return text[:end]
}

// fields parts a text at the characters of a set.
func fields(text string, ends *byteSet) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for i := range len(text) {
			if !ends[text[i]] {
				continue
			}
			if i > start && !yield(text[start:i]) {
				return
			}
			start = i + 1
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}

// wordings finds some of many texts at the beginnings of words, whatever the case of their letters.
type wordings[T any] struct {
	byFirst [256][]wording[T]
}

type wording[T any] struct {
	text  string // in lower case
	value T
}

// add adds texts, parted by bars, that stand for a value.
func (w *wordings[T]) add(value T, texts string) {
	for text := range strings.SplitSeq(texts, "|") {
		w.byFirst[text[0]] = append(w.byFirst[text[0]], wording[T]{text, value})
	}
}

// findAt calls found with the value of each text that stands in a line, and where it begins.
func (w *wordings[T]) findAt(line string, found func(T, int)) {
	inside := false
	for i := range len(line) {
		c := line[i]
		letter := isAlphanumeric(c)
		if inside && letter {
			continue
		}
		inside = letter
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		for _, candidate := range w.byFirst[c] {
			end := i + len(candidate.text)
			if end <= len(line) && strings.EqualFold(line[i:end], candidate.text) && !splitsWord(line, end) {
				found(candidate.value, i)
			}
		}
	}
}

// splitsWord says whether letters stand before and behind an offset.
func splitsWord(line string, at int) bool {
	return at < len(line) && isAlphanumeric(line[at]) && isAlphanumeric(line[at-1])
}

// parts finds some of many texts anywhere in a word.
type parts [256][]string

func newParts(texts ...string) *parts {
	var p parts
	for _, text := range texts {
		p[text[0]] = append(p[text[0]], text)
	}
	return &p
}

// anyIn says whether one of the texts stands in a word.
func (p *parts) anyIn(text string) bool {
	for i := range len(text) {
		if len(p[text[i]]) > 0 && p.begin(text[i:]) {
			return true
		}
	}
	return false
}

// begin says whether a text begins with one of them.
func (p *parts) begin(text string) bool {
	if text == "" {
		return false
	}
	for _, part := range p[text[0]] {
		if strings.HasPrefix(text, part) {
			return true
		}
	}
	return false
}
