package scripts

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/claudeops/claudeops/internal/base/textscan"
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

// decodeScript returns a script's text in UTF-8, without its byte order mark. mark names the encoding that such a mark
// gives; "" for none. A text without a mark that is not UTF-8 is read as Windows-1252, as Windows PowerShell does in
// western locales.
func decodeScript(text []byte) (decoded, mark string) {
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

// readDescription reads what a script says about itself. problem says why such a script cannot run; "" if it can.
func readDescription(i Interpreter, text []byte) (d Description, problem string) {
	decoded, mark := decodeScript(text)
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

const (
	maxHeaderLines = 200 // of a script, that are looked at for its header
	maxQuoted      = 100 // characters of a line that cannot be read
)

// ParseHeader reads what a script of sh, Python or Node says about itself in the comments at its top:
//
//	# One line that says what it does.
//	# @param name type required|optional description
//
// Without such comments, the text in three quotes or in /* */ below them describes it. Metadata of PEP 723 is passed
// over.
// A comment begins with # or //. type is string, integer, number, boolean or array; an array is given as the same
// argument several times. A script without such a line takes plain words, and so does one with a line that cannot be
// read.
func ParseHeader(text string) Description {
	d := Description{}
	said, metadata := false, false
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		comment, isComment := commentOf(line)
		switch {
		case i == 0 && strings.HasPrefix(line, "#!") || line == "" && !said && d.Synopsis == "":
			continue
		case metadata || line == "# /// script": // PEP 723
			metadata = line != "# ///" && isComment
			continue
		case !isComment && line != "" || i >= maxHeaderLines:
			d.addDocstring(lines[i:])
			return d.orPlainWords(said)
		}
		rest, isParam := strings.CutPrefix(comment, "@param ")
		switch {
		case isParam:
			said = true
			if p, ok := headerParameter(rest); ok {
				d.Parameters = append(d.Parameters, p)
			} else if d.Note == "" {
				d.Note = fmt.Sprintf(
					"The line %q of the script is not `@param name type required|optional description`; give its argument as plain words.",
					textscan.Clean(comment, maxQuoted))
			}
		case comment == "@param" || comment == "@noparams":
			said = true
		case said && strings.TrimSpace(comment) != "" && len(d.Parameters) > 0 && strings.HasPrefix(comment, " "):
			last := &d.Parameters[len(d.Parameters)-1]
			last.Description = strings.TrimSpace(last.Description + " " + strings.TrimSpace(comment))
		case strings.TrimSpace(comment) == "":
		case d.Synopsis == "":
			d.Synopsis = strings.TrimSpace(comment)
		case !said:
			d.Details = strings.TrimSpace(d.Details + "\n" + strings.TrimSpace(comment))
		}
	}
	return d.orPlainWords(said)
}

// addDocstring reads the text in three quotes, or between /* and */, with which a script begins below its comments. It
// describes one whose comments do not.
func (d *Description) addDocstring(lines []string) {
	if d.Synopsis != "" {
		return
	}
	text := strings.TrimSpace(strings.Join(lines[:min(len(lines), maxHeaderLines)], "\n"))
	for start, end := range map[string]string{`"""`: `"""`, `'''`: `'''`, `r"""`: `"""`, "/**": "*/", "/*": "*/"} {
		inner, begins := strings.CutPrefix(text, start)
		inner, _, ends := strings.Cut(inner, end)
		if !begins || !ends || start == "/*" && strings.HasPrefix(inner, "*") {
			continue
		}
		for line := range strings.Lines(inner) {
			line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "* "))
			switch {
			case line == "" || line == "*":
			case d.Synopsis == "":
				d.Synopsis = line
			default:
				d.Details = strings.TrimSpace(d.Details + "\n" + line)
			}
		}
	}
}

// commentOf returns the text of a line of comment, without the mark and one space.
func commentOf(line string) (string, bool) {
	for _, mark := range []string{"#", "//"} {
		if text, ok := strings.CutPrefix(line, mark); ok {
			return strings.TrimPrefix(text, " "), true
		}
	}
	return "", false
}

func (d Description) orPlainWords(said bool) Description {
	if !said {
		d.Note = "The script does not say which parameters it takes; give its arguments as plain words."
	}
	return d
}

// headerParameter reads `name type required|optional description`. The third word may be missing: then it is optional.
func headerParameter(text string) (Parameter, bool) {
	words := strings.Fields(text)
	if len(words) < 2 || !isName(words[0]) {
		return Parameter{}, false
	}
	p := Parameter{Name: words[0]}
	of := strings.ToLower(words[1])
	if inner, ok := strings.CutSuffix(of, "[]"); ok {
		p.Type = Array
		if p.Items, _, _ = typeOf(inner); inner == "integer" || inner == "number" {
			p.Items = Type(inner)
		}
	} else if p.Type, p.Items, p.Switch = typeOf(of); p.Type == Any {
		p.Type = map[string]Type{"integer": Integer, "number": Number, "list": Array}[of]
	}
	if p.Type == Array && p.Items == Any {
		p.Items = String
	}
	rest := words[2:]
	if len(rest) > 0 {
		switch strings.ToLower(rest[0]) {
		case "required":
			p.Required, rest = true, rest[1:]
		case "optional":
			rest = rest[1:]
		}
	}
	p.Description = strings.Join(rest, " ")
	return p, p.Type != Any
}

// isName reports whether a text can be the name of an argument: letters, digits, - and _, and no hyphen first.
func isName(text string) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && r != '_' && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return text != "" && len(text) <= 64
}
