package scripts

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/system/processtree"
)

// Notices at the end of what a script printed.
const (
	truncatedNotice = "\n[truncated]"
	binaryNotice    = "[binary output, in base64]\n"
)

// slack is the number of bytes kept beyond the cap until our tokens have been removed, so that none is cut in two and
// half of it shown.
const slack = 8 << 10

// printed is a script's output on a stream, and the limit for showing it.
type printed struct {
	processtree.Output
	most int
}

// over reports whether there is more than is shown.
func (c printed) over() bool { return c.Size > c.most }

// text returns the kept output, without our tokens: cut between characters, with a notice if something is missing.
// Output that is not text is given in base64.
func (c printed) text(redact func(string) string) string {
	kept := []byte(redact(string(c.Text)))
	if c.over() {
		kept = wholeCharacters(kept[:min(len(kept), c.most)])
	}
	text := string(kept)
	switch {
	case utf8.Valid(kept) && !strings.ContainsRune(text, 0):
	case mostlyText(kept):
		text = strings.ToValidUTF8(text, "\ufffd")
	default:
		text = binaryNotice + base64.StdEncoding.EncodeToString(kept[:min(len(kept), c.most*3/4)])
	}
	if c.over() {
		text += truncatedNotice
	}
	return text
}

// wholeCharacters cuts a character that is not complete off the end.
func wholeCharacters(text []byte) []byte {
	for back := 1; back <= utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// mostlyText reports whether bytes are text with a few that are not UTF-8: no NUL, and at most one in ten.
func mostlyText(text []byte) bool {
	bad := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == 0:
			return false
		case r == utf8.RuneError && size == 1:
			bad++
		}
		i += size
	}
	return bad*10 <= len(text)
}
