package scripts

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// byteOrderMark is a mark at the beginning of a text that says how the text is encoded.
type byteOrderMark struct {
	bytes    string
	name     string
	encoding encoding.Encoding // nil for UTF-8
}

// byteOrderMarks returns the marks that PowerShell knows, a longer one before one that it begins with.
func byteOrderMarks() []byteOrderMark {
	return []byteOrderMark{
		{"\xff\xfe\x00\x00", "UTF-32", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
		{"\x00\x00\xfe\xff", "UTF-32", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
		{"\xff\xfe", "UTF-16", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
		{"\xfe\xff", "UTF-16", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
		{"\xef\xbb\xbf", "UTF-8", nil},
	}
}

// decode returns a script's text in UTF-8, without its byte order mark. mark names the encoding that such a mark gives;
// "" for none. A text without a mark that is not UTF-8 is read as Windows-1252, as Windows PowerShell does in western
// locales.
func decode(text []byte) (decoded, mark string) {
	for _, m := range byteOrderMarks() {
		rest, has := bytes.CutPrefix(text, []byte(m.bytes))
		switch {
		case !has:
		case m.encoding == nil:
			return strings.ToValidUTF8(string(rest), "\ufffd"), m.name
		default:
			return decodedBy(m.encoding, rest), m.name
		}
	}
	if utf8.Valid(text) {
		return string(text), ""
	}
	return decodedBy(charmap.Windows1252, text), ""
}

func decodedBy(e encoding.Encoding, text []byte) string {
	out, err := e.NewDecoder().Bytes(text)
	if err != nil { // invalid bytes become U+FFFD; there is no other error
		return strings.ToValidUTF8(string(text), "\ufffd")
	}
	return string(out)
}

// describe reads what a script says about itself. problem says why such a script cannot run; "" if it can.
func describe(i Interpreter, text []byte) (d Description, problem string) {
	decoded, mark := decode(text)
	switch {
	case i == PowerShell && strings.ContainsRune(decoded, 0):
		return Description{Note: "The text of the script holds NULs, such as UTF-16 without a byte order mark, and could " +
			"not be read. " + plainWordsOfPowerShell}, ""
	case i == PowerShell:
		return parsePowerShell(decoded), ""
	case mark == "UTF-8" && i != Shell && i != Bash:
	case mark != "":
		return Description{}, "begins with the byte order mark of " + mark + ", which " + string(i) +
			" does not take; save it as UTF-8 without one"
	}
	return ParseHeader(decoded), ""
}
