package facts

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textscan"
)

const (
	// minEncoded is the length in bytes of the shortest word that is looked at as encoded text.
	minEncoded = 24
	// longToken is the length in bytes from which a word of random letters cannot be read, whatever it stands for.
	longToken = 80
	// longAlt is the length in bytes from which the text of a picture is one that no page shows.
	longAlt = 200
	// minSpread is the length in bytes of the shortest line that is looked at as a part of encoded text over several.
	minSpread = 16
	// mostEncoded bounds the encoded text that is decoded as one, in bytes.
	mostEncoded = 16 << 10
)

// readOpaque gives what cannot be read in a line, and what it says decoded. line is as it is written; look is of it,
// too.
func readOpaque(u unit, line unitLine, look look, inside *unpacker) []hit {
	var found []hit
	add := func(class Class, says, words string) {
		found = append(found, hit{class, says, u.where, line.number, line.number, words})
	}
	text := line.text
	if len(text) > maxLine {
		add(Opaque, "A line too long to read", text[:MaxWords])
		text = text[:maxLine]
	}
	if look.right > 0 && strings.Trim(text[look.right:], " |-+\t") != "" {
		add(Opaque, "Text far to the right", text[look.right:])
	}
	if at := strings.Index(text, ";base64,"); at >= 0 && len(text)-at > minEncoded+8 && strings.Contains(text[:at],
		"data:") {
		add(Opaque, "Data in an address", text[strings.Index(text, "data:"):])
	}
	if look.written.has(hasBack) && (strings.Count(text, `\x`) >= 6 || strings.Count(text, `\u00`) >= 6) {
		add(Opaque, "Letters written as numbers", text)
		if decoded := inside.escapes(text); decoded != "" {
			found = append(found, decodedFacts(u, line, decoded, inside, 1)...)
		}
	}
	if alt := pictureText(text); len(alt) > longAlt {
		add(Opaque, "Text of a picture that no page shows", alt)
	}
	if look.run < minEncoded {
		return found
	}
	for word := range fields(text, encodingEnds()) {
		if len(word) < minEncoded {
			continue
		}
		if decoded := inside.decode(word); decoded != "" {
			add(Opaque, "Encoded text that says", decoded)
			found = append(found, decodedFacts(u, line, decoded, inside, 1)...)
		} else if len(word) >= longToken && isRandom(word) {
			add(Opaque, "A long word that cannot be read", word)
		}
	}
	return found
}

// look is what a line looks like.
type look struct {
	run     int32 // the length of the longest run of digits of base64
	right   int32 // the offset of text behind so many spaces that it is out of sight; 0 if there is none
	written signs // as it is written
	signs   signs // without disguises
}

// mayBeOpaque says whether readOpaque may find something in the line.
func (l look) mayBeOpaque() bool {
	return l.run >= minEncoded || l.right > 0 || l.written.has(hasBang|hasBack|hasComma)
}

// lookOf looks once at each character of a line.
func lookOf(text string) (l look) {
	const outOfSight = 60
	table := lineBytes()
	longest, right, run, spaces, begun := 0, 0, 0, 0, false
	for i := range len(text) {
		c := text[i]
		if c == ' ' {
			spaces++
			run = 0
			continue
		}
		if spaces >= outOfSight && begun {
			right = i
		}
		spaces, begun = 0, true
		l.written |= table[c]
		run++
		if table[c]&endsEncoded != 0 {
			run = 0
		}
		longest = max(longest, run)
	}
	l.run, l.right, l.signs = int32(longest), int32(right), l.written //nolint:gosec // see maxLine and mostEncoded
	return l
}

// decodedFacts gives the facts of a text that a line held encoded.
func decodedFacts(u unit, line unitLine, decoded string, inside *unpacker, depth int) []hit {
	lines := strings.FieldsFunc(decoded, func(r rune) bool { return r == '\n' || r == '\r' })
	inner := unit{where: u.where, lines: make([]unitLine, len(lines))}
	plain := make([]string, len(lines))
	for i, text := range lines {
		plain[i], inner.lines[i] = textscan.Undisguise(text), unitLine{line.number, text}
	}
	found, _ := readSentences(nil, inner, plain)
	found = readCode(found, inner, plain)
	if depth == maxDepth || lookOf(decoded).run < minEncoded {
		return found
	}
	for word := range fields(decoded, encodingEnds()) {
		if again := inside.decode(word); again != "" {
			found = append(found, decodedFacts(u, line, again, inside, depth+1)...)
		}
	}
	return found
}

// readSpread gives what encoded text over several lines of a unit says, of those that change.
func readSpread(u unit, changed []bool, inside *unpacker) []hit {
	var found []hit
	for first := 0; first < len(u.lines); {
		last, joined := first, ""
		for last < len(u.lines) && len(joined) < mostEncoded && isSpread(u.lines[last].text) {
			joined += strings.TrimSpace(u.lines[last].text)
			last++
		}
		from := firstChanged(changed, u.lines[first].number, u.lines[max(first, last-1)].number)
		if last > first+1 && from >= 0 {
			if decoded := inside.decode(joined); decoded != "" {
				line := unitLine{from, decoded}
				found = append(found, hit{Opaque, "Encoded text over several lines that says", u.where, from, from, decoded})
				found = append(found, decodedFacts(u, line, decoded, inside, 1)...)
			}
		}
		first = max(last, first+1)
	}
	return found
}

// isSpread says whether a line is one word that encoded text may have.
func isSpread(line string) bool {
	line = strings.TrimSpace(line)
	ends := encodingEnds()
	for i := range len(line) {
		if ends[line[i]] {
			return false
		}
	}
	return len(line) >= minSpread || strings.HasSuffix(line, "=")
}

// encodingEnds are the characters that base64 and hexadecimal digits do not have.
var encodingEnds = sync.OnceValue(func() *byteSet { //nolint:gochecknoglobals // made once, never changed
	return newByteSet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=-_").inverted()
})

// isText says whether data are text that can be read.
func isText(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for _, r := range string(data) {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r' {
			return false
		}
	}
	return len(data) > 0
}

// isRandom says whether a word has small and large letters and digits in no order, unlike a path or a name.
func isRandom(word string) bool {
	if !hasMixedCase(word) || strings.Count(word, "/") > len(word)/20 || strings.Count(word, "-")+strings.Count(word,
		"_") > len(word)/12 {
		return false
	}
	changes := 0
	for i := 1; i < len(word); i++ {
		if kindOfByte(word[i]) != kindOfByte(word[i-1]) {
			changes++
		}
	}
	return changes*3 > len(word)
}

func kindOfByte(c byte) int {
	switch {
	case c >= 'a' && c <= 'z':
		return 1
	case c >= 'A' && c <= 'Z':
		return 2
	case c >= '0' && c <= '9':
		return 3
	}
	return 4
}

func hasMixedCase(word string) bool {
	var kinds [5]bool
	for i := range len(word) {
		kinds[kindOfByte(word[i])] = true
	}
	return kinds[1] && kinds[2]
}

// pictureText gives the text of the first picture of a line of Markdown; "" if there is none.
func pictureText(line string) string {
	_, rest, ok := strings.Cut(line, "![")
	if !ok {
		return ""
	}
	alt, _, _ := strings.Cut(rest, "](")
	return alt
}

// readComment gives what a comment that no page shows says.
func readComment(u unit, plain []string) []hit {
	words, orders := 0, false
	readWords(plain, false, u.words, func(s sentence) {
		words += len(s)
		for i := range s {
			orders = orders || s[i].has(erase|send|collect|insert|perform|ignore|install) && s.isOrder(i) || s[i].has(model|your)
		}
	})
	const fewWords = 3
	if words <= fewWords || !orders {
		return nil
	}
	last := u.lines[len(u.lines)-1].number
	return []hit{{Opaque, "A comment that no page shows", u.where, u.lines[0].number, last,
		strings.TrimSpace(strings.Join(plain, " "))}}
}
