package facts

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// undisguised gives a line as what runs or reads it would take it: escapes of languages and of HTML, percent-encoding,
// look-alikes and compatible forms of letters are undone. A line has no break in it afterwards.
func undisguised(line string) string {
	if strings.IndexFunc(line, func(r rune) bool { return r >= utf8.RuneSelf || r == '\\' || r == '&' || r == '%' }) < 0 {
		return line
	}
	var b strings.Builder
	b.Grow(len(line))
	for at := 0; at < len(line); {
		decoded, size := undisguise(line[at:])
		b.WriteString(decoded)
		at += size
	}
	return b.String()
}

// undisguise reads the character at the start of a text, which is not empty, and returns what it stands for and its
// length in bytes.
func undisguise(text string) (plain string, size int) {
	switch c := text[0]; {
	case c == '\\' && len(text) > 3 && text[1] == 'x':
		return hexCharacter(text, 2, 2)
	case c == '\\' && len(text) > 5 && text[1] == 'u':
		return hexCharacter(text, 2, 4)
	case c == '%' && len(text) > 2:
		return hexCharacter(text, 1, 2)
	case c == '&':
		return reference(text)
	case c < utf8.RuneSelf:
		return text[:1], 1
	}
	return compatible(text)
}

// hexCharacter reads a printable character of ASCII that is written as hexadecimal digits.
func hexCharacter(text string, from, digits int) (plain string, size int) {
	value, err := strconv.ParseUint(text[from:from+digits], 16, 32)
	if err != nil || value < ' ' || value >= 0x7f {
		return text[:1], 1
	}
	return string(rune(value)), from + digits
}

// reference reads a character reference of HTML.
func reference(text string) (plain string, size int) {
	const longest = 12
	end := strings.IndexByte(text[:min(len(text), longest)], ';') + 1
	if end < 3 {
		return text[:1], 1
	}
	plain = html.UnescapeString(text[:end])
	if plain == text[:end] || strings.ContainsAny(plain, "\r\n") {
		return text[:1], 1
	}
	return plain, end
}

// compatible gives the ASCII letters that a character is a form of or looks like, or the character itself.
func compatible(text string) (plain string, size int) {
	r, size := utf8.DecodeRuneInString(text)
	if c := lookAlike(r); c != 0 {
		return string(rune(c)), size
	}
	decomposed := norm.NFKD.PropertiesString(text[:size]).Decomposition()
	if len(decomposed) > 0 && decomposed[0] < utf8.RuneSelf && len(decomposed) == 1 {
		return string(decomposed), size
	}
	return text[:size], size
}

// lookAlike returns the letter of ASCII that a Cyrillic or Greek one looks like, or 0.
func lookAlike(r rune) byte {
	const alike, ascii = "аеорсухіјѕһԁԛԝкАВЕКМНОРСТУХІЈЅԌԚԜοΟαΑΒΕΖΗΙΚΜΝΡΤΥΧνρκι", "aeopcyxijshdqwkABEKMHOPCTYXIJSGQWoOaABEZHIKMNPTYXvpki"
	if r < 0x370 || r > 0x52f {
		return 0
	}
	if at := strings.IndexRune(alike, r); at >= 0 {
		return ascii[utf8.RuneCountInString(alike[:at])]
	}
	return 0
}
