package sanitize

import (
	"html"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/base/textscan/secretrules"
)

// view is text as a reader sees it, with the place in the source of each of its bytes. Spellings of one character are
// one: entities and escapes are the character, full-width forms of ASCII are ASCII, spaces of any kind are ' '.
type view struct {
	source    string
	raw       bool // the text is as it is written, code included
	text      []byte
	from, to  []int32     // of each byte of text: source[from:to] is the character
	edge      []bool      // of each byte: a text node of the rendered page begins here
	addresses []byteRange // of text: addresses that forges make links of by themselves
	links     []linkAt
	veiled    []int // offsets in source of entities that stand for invisible characters

	lower string // what folded returns
}

// folded returns the text for filters. The view is complete then.
func (v *view) folded() string {
	if len(v.lower) == 0 {
		v.lower = secretrules.Fold(string(v.text))
	}
	return v.lower
}

type byteRange struct{ from, to int }

// linkAt says where in the view's text a link begins.
type linkAt struct {
	at          int // in text
	source      int // in source
	destination string
}

// opaque stands in a view for code: no reader acts on what is in there.
const opaque = 0

// rawView returns a text as it is written.
func rawView(source string) *view {
	v := newView(source)
	v.raw = true
	v.addRaw(0, len(source))
	return v
}

// decodedView returns a text as Markdown would show it if it had no structure.
func decodedView(source string) *view {
	v := newView(source)
	v.addText(0, len(source))
	return v
}

func newView(source string) *view {
	n := len(source) + 16
	return &view{source: source, text: make([]byte, 0, n), from: make([]int32, 0, n), to: make([]int32, 0, n),
		edge: make([]bool, 0, n)}
}

// appendRune appends a character that stands at source[from:to].
func (v *view) appendRune(r rune, from, to int) {
	before := len(v.text)
	v.text = utf8.AppendRune(v.text, oneSpelling(r))
	for range len(v.text) - before {
		v.from, v.to, v.edge = append(v.from, int32(from)), append(v.to, int32(to)), append(v.edge, false)
	}
}

// oneSpelling returns the one spelling of a character; see view.
func oneSpelling(r rune) rune {
	const fullWidth = '！' - '!' // U+FF01 to U+FF5E are ! to ~
	switch {
	case r == '\n' || r >= '!' && r <= '~' || r == ' ':
		return r
	case r >= '！' && r <= '～':
		return r - fullWidth
	case r == '﹫':
		return '@'
	case r == '﹟':
		return '#'
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// addRaw appends source[from:to] as it is written, as one text node.
func (v *view) addRaw(from, to int) {
	first := len(v.text)
	for from < to {
		r, size := utf8.DecodeRuneInString(v.source[from:to])
		v.appendRune(r, from, from+size)
		from += size
	}
	v.beginsNode(first)
}

// addText appends source[from:to] with escapes and entities resolved (CommonMark 0.31, "Backslash escapes" and "Entity
// and numeric character references"), as one text node.
func (v *view) addText(from, to int) {
	first := len(v.text)
	for at := from; at < to; {
		rest := v.source[at:to]
		if len(rest) > 1 && rest[0] == '\\' && isPunctuation(rest[1]) {
			v.appendRune(rune(rest[1]), at, at+2)
			at += 2
			continue
		}
		if decoded, size := decodeEntity(rest); size > 0 {
			if len(textscan.Hidden(decoded)) > 0 {
				v.veiled = append(v.veiled, at)
			}
			for _, r := range decoded {
				v.appendRune(r, at, at+size)
			}
			at += size
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		v.appendRune(r, at, at+size)
		at += size
	}
	v.beginsNode(first)
}

func (v *view) beginsNode(first int) {
	if first < len(v.edge) {
		v.edge[first] = true
	}
}

// isPunctuation reports whether a backslash escapes a character.
func isPunctuation(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

// maxEntity is the length of the longest entity, in bytes: HTML has none of more than 33.
const maxEntity = 40

// decodeEntity returns the character of the entity at the start of text, and the entity's length; 0 if there is none.
func decodeEntity(text string) (string, int) {
	if len(text) < 3 || text[0] != '&' {
		return "", 0
	}
	for i := 1; i < len(text) && i < maxEntity; i++ {
		switch c := text[i]; {
		case c == ';':
			token := text[:i+1]
			if decoded := html.UnescapeString(token); decoded != token && i > 1 {
				return decoded, len(token)
			}
			return "", 0
		case c == '#' && i == 1, c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		default:
			return "", 0
		}
	}
	return "", 0
}

// is reports whether the byte at an index of the view is c and is written as c in the source.
func (v *view) is(index int, c byte) bool {
	return v.text[index] == c && v.to[index]-v.from[index] == 1
}
