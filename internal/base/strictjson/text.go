package strictjson

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxEcho   = 60  // how many characters of submitted text a message repeats
	maxReason = 120 // how many characters of the library's reason, which quotes a few of the text
)

// text returns the value of the JSON string raw, which was read last. A flaw in it is noted about subject, or about
// where the decoder is, and ok is false. The error is errEnough.
func (d *decoder) text(subject func() string, raw jsontext.Value) (value string, ok bool, err error) {
	at, flaw, fix := flawIn(raw, d.opts.RefuseNUL)
	if flaw != "" {
		start := d.in.InputOffset() - int64(len(raw))
		return "", false, d.note(fix, "%s holds %s at byte offset %d", subject(), flaw, start+int64(at))
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true, nil
	}
	unquoted, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
	if err != nil { // flawIn and the library disagree; the stricter of the two decides
		return "", false, d.note("send it as UTF-8", "%s is not a valid string", subject())
	}
	return string(unquoted), true, nil
}

// flawIn finds the first thing in a JSON string, which is well-formed otherwise, that does not stand for a character:
// its offset, what it is, and what to do about it.
func flawIn(raw []byte, refuseNUL bool) (at int, flaw, fix string) {
	for at < len(raw) {
		r, size := utf8.DecodeRune(raw[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			return at, "invalid UTF-8", "send it as UTF-8"
		case r != '\\':
			at += size
			continue
		}
		unit, escape := escaped(raw[at:])
		switch {
		case unit == 0 && refuseNUL:
			return at, "a NUL character", "remove it"
		case !utf16.IsSurrogate(unit):
			at += escape
			continue
		}
		second, more := escaped(raw[at+escape:])
		if utf16.DecodeRune(unit, second) == unicode.ReplacementChar {
			return at, "half of a surrogate pair", "write the whole pair, or the character itself"
		}
		at += escape + more
	}
	return 0, "", ""
}

// escaped returns the UTF-16 code unit that an escape at the start of text stands for, if it is a \u escape, and the
// length of the escape. Anything else gives an ordinary character.
func escaped(text []byte) (unit rune, size int) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return ' ', min(len(text), 2)
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return ' ', 2
	}
	return rune(n), 6
}

// clip makes submitted text fit to be repeated: at most limit characters, none of them invisible, no backtick.
func clip(s string, limit int) string {
	var b strings.Builder
	count := 0
	for _, r := range s {
		if count == limit {
			return b.String() + "…"
		}
		switch {
		case r == '`':
			r = '\''
		case !unicode.IsPrint(r):
			r = utf8.RuneError
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}
