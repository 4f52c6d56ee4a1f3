package textscan

import (
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unescaped replaces each escape by the characters that it stands for, and says whether there was one:
//
//   - percent-encoding (%41);
//   - the escapes of JSON, JavaScript, Python and C: \u0041, \u{41}, \U00000041, \x41, \101, \n, \", \\ and the like;
//   - character references of HTML: &#65; &#x41; &amp;
//   - characters that Unicode calls a form of ASCII ones, such as full-width and mathematical letters, and Cyrillic and
//     Greek letters that look like them;
//   - characters that show nothing, such as soft hyphens: they stand for nothing.
func (l layer) unescaped() (layer, bool) {
	if !escapable(l.text) {
		return l, false
	}
	b := layerBuilder{from: l, text: make([]byte, 0, len(l.text)), origins: make([]int, 0, len(l.text)+1)}
	for at := 0; at < len(l.text); {
		decoded, size := escape(l.text[at:])
		if size == 0 {
			b.copyTo(at+1, at)
			at++
			continue
		}
		b.appendDecoded(decoded, at)
		at += size
	}
	if b.changed == nil {
		return l, false
	}
	return b.layer(), true
}

// Undisguise gives a line as what runs or reads it would take it: one layer of the escapes that Secrets undoes is taken
// off, letters that look like those of ASCII become these, and what shows nothing is left out. The line stays one line:
// escapes of its ends and of tabs stay as they are.
func Undisguise(line string) string {
	if !escapable(line) {
		return line
	}
	var b strings.Builder
	b.Grow(len(line))
	for at := 0; at < len(line); {
		decoded, size := escape(line[at:])
		if size == 0 || strings.ContainsAny(decoded, "\n\r\t") {
			decoded, size = line[at:at+max(1, size)], max(1, size)
		}
		b.WriteString(decoded)
		at += size
	}
	return b.String()
}

// escapable says whether text can hold an escape at all, which most texts cannot.
func escapable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c == '%' || c == '\\' || c == '&' || c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// escape decodes the escape at the start of text, and returns the escape's length in bytes; 0 if text begins with none.
func escape(text string) (decoded string, size int) {
	switch c := text[0]; {
	case c == '%':
		if value, ok := hexNumber(text[1:], 2); ok {
			return string([]byte{byte(value)}), 3
		}
	case c == '\\':
		return backslashEscape(text)
	case c == '&':
		return reference(text)
	case c >= utf8.RuneSelf:
		return compatible(text)
	}
	return "", 0
}

// hexNumber reads exactly n hexadecimal digits.
func hexNumber(text string, n int) (uint32, bool) {
	if len(text) < n {
		return 0, false
	}
	value, err := strconv.ParseUint(text[:n], 16, 32)
	if err != nil || text[0] == '+' || strings.ContainsRune(text[:n], '_') {
		return 0, false
	}
	return uint32(value), true
}

// backslashEscape reads an escape of JSON, JavaScript, Python or C.
func backslashEscape(text string) (string, int) {
	if len(text) < 2 {
		return "", 0
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[1]]
	if digits > 0 {
		if value, ok := hexNumber(text[2:], digits); ok {
			if digits == 2 {
				return string([]byte{byte(value)}), 4
			}
			return string(rune(value)), 2 + digits
		}
		return braced(text)
	}
	switch c := text[1]; c {
	case 'n', 'r', 't':
		return map[byte]string{'n': "\n", 'r': "\r", 't': "\t"}[c], 2
	case '"', '\'', '\\', '/', '`':
		return string(c), 2
	case '\n':
		return "", 0 // see joins
	}
	return octal(text)
}

// braced reads \u{41} and \x{41}.
func braced(text string) (string, int) {
	end := strings.IndexByte(text[:min(len(text), 12)], '}')
	if end < 4 || text[2] != '{' {
		return "", 0
	}
	value, ok := hexNumber(text[3:], end-3)
	if !ok {
		return "", 0
	}
	return string(rune(value)), end + 1
}

// octal reads \101, with one to three digits.
func octal(text string) (string, int) {
	end, value := 1, 0
	for end < len(text) && end < 4 && text[end] >= '0' && text[end] <= '7' {
		value = value*8 + int(text[end]-'0')
		end++
	}
	if end == 1 || value > 255 {
		return "", 0
	}
	return string([]byte{byte(value)}), end
}

// reference reads a character reference of HTML. The longest name has 31 letters.
func reference(text string) (string, int) {
	end := strings.IndexByte(text[:min(len(text), 34)], ';') + 1
	if end == 0 { // a number may go without its semicolon
		end = 1
		for end < len(text) && end < 12 && (text[end] == '#' || isAlphanumeric(text[end])) {
			end++
		}
	}
	if end < 3 {
		return "", 0
	}
	decoded := html.UnescapeString(text[:end])
	if decoded == text[:end] {
		return "", 0
	}
	return decoded, end
}

// compatible gives the ASCII characters that the character which text begins with is a form of; none for those that
// show nothing, such as a soft hyphen.
func compatible(text string) (string, int) {
	r, size := utf8.DecodeRuneInString(text)
	if unicode.Is(unicode.Cf, r) {
		return "", size
	}
	if c := lookAlike(r); c != 0 {
		return string(rune(c)), size
	}
	decomposed := norm.NFKD.PropertiesString(text).Decomposition()
	if len(decomposed) == 0 {
		return "", 0
	}
	for _, c := range decomposed {
		if c >= utf8.RuneSelf {
			return "", 0
		}
	}
	return string(decomposed), size
}

// lookAlike returns the letter of ASCII that a Cyrillic or Greek one looks like, or 0.
func lookAlike(r rune) byte {
	const alike, ascii = "аеорсухіјѕһԁԛԝкѵүӏАВЕКМНОРСТУХІЈЅԌԚԜѴҮӀοΟαΑΒΕΖΗΙΚΜΝΡΤΥΧνρκιγσυϲϳϹͿ",
		"aeopcyxijshdqwkvylABEKMHOPCTYXIJSGQWVYIoOaABEZHIKMNPTYXvpkiyoucjCJ"
	if r < 0x370 || r > 0x52f {
		return 0
	}
	if at := strings.IndexRune(alike, r); at >= 0 {
		return ascii[utf8.RuneCountInString(alike[:at])]
	}
	return 0
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// fromQuotedPrintable takes quoted-printable off a layer, as in mails: "=41", and lines that end in "=". It says
// whether there was any. Other layers do not build on this one, since "=" and two digits may also begin a value.
func (l layer) fromQuotedPrintable() (layer, bool) {
	if !strings.Contains(l.text, "=") {
		return l, false
	}
	b := layerBuilder{from: l}
	from := 0
	for at := 0; at < len(l.text); {
		decoded, size := decodeQuotedPrintable(l.text[at:])
		if size == 0 {
			at++
			continue
		}
		b.copyTo(at, from)
		b.appendDecoded(decoded, at)
		at += size
		from = at
	}
	if b.changed == nil {
		return l, false
	}
	b.copyTo(len(l.text), from)
	return b.layer(), true
}

// decodeQuotedPrintable decodes the quoted-printable escape at the start of text, and returns the escape's length in
// bytes; 0 if text begins with none.
func decodeQuotedPrintable(text string) (decoded string, size int) {
	if text[0] != '=' {
		return "", 0
	}
	rest := strings.TrimLeft(text[1:], " \t\r")
	if strings.HasPrefix(rest, "\n") {
		return "", len(text) - len(rest) + 1
	}
	if value, ok := hexNumber(text[1:], 2); ok {
		return string([]byte{byte(value)}), 3
	}
	return "", 0
}

// withoutMarkup leaves out what shows nothing, or shows aside: comments of HTML, C and shells, tags of HTML, and the
// lines that begin and end blocks of code. It says whether there was any.
func (l layer) withoutMarkup() (layer, bool) {
	if !strings.ContainsAny(l.text, "<#/`~-") {
		return l, false
	}
	b := layerBuilder{from: l}
	from := 0
	for at := 0; at < len(l.text); {
		size := markup(l.text, at)
		if size == 0 {
			at++
			continue
		}
		b.copyTo(at, from)
		b.appendDecoded("", at)
		at += size
		from = at
	}
	if b.changed == nil {
		return l, false
	}
	b.copyTo(len(l.text), from)
	return b.layer(), true
}

// changedInWords gives the changes that stand between characters of words.
func (l layer) changedInWords() []byteRange {
	var within []byteRange
	for _, c := range l.changed {
		if c.start > 0 && c.end < len(l.text) && inWord(l.text[c.start-1]) && inWord(l.text[c.end]) {
			within = append(within, c)
		}
	}
	return within
}

// markup returns the length of the markup that begins at an offset of a text, or 0.
func markup(text string, at int) int {
	const longest = 512 // bytes of a comment or tag
	switch text[at] {
	case '<', '/', '#', '`', '~', '-':
	default:
		return 0
	}
	rest := text[at:min(len(text), at+longest)]
	switch text[at] {
	case '<':
		if strings.HasPrefix(rest, "<!--") {
			return lengthTo(rest, "<!--", "-->")
		}
		if len(rest) > 1 && (rest[1] == '/' || isAlphanumeric(rest[1])) {
			return lengthTo(rest, "<", ">")
		}
	case '/':
		if strings.HasPrefix(rest, "/*") {
			return lengthTo(rest, "/*", "*/")
		}
	}
	before := byte('\n')
	if at > 0 {
		before = text[at-1]
	}
	line, _, _ := strings.Cut(rest, "\n")
	switch {
	case before == '\n' && (strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")):
		return len(line)
	case strings.IndexByte("\n \t", before) >= 0 &&
		(line != "" && line[0] == '#' || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "-- ")):
		return len(line)
	}
	return 0
}

// lengthTo returns the length of a part of text that begins and ends with two marks, or 0. It does not contain another
// beginning.
func lengthTo(text, begin, end string) int {
	at := strings.Index(text, end)
	if at < 0 || strings.Contains(text[len(begin):max(at, len(begin))], begin) {
		return 0
	}
	return at + len(end)
}
