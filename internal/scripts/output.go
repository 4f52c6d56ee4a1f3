package scripts

import (
	"encoding/base64"
	"io"
	"strings"
	"unicode/utf8"
)

// Notices at the end of what a script printed.
const (
	truncatedNotice = "\n[truncated]"
	binaryNotice    = "[binary output, in base64]\n"
)

// slack is how much more than the cap is kept until our tokens have been taken out, so that none is cut in two and half of it shown.
const slack = 8 << 10

// capture keeps the beginning of a stream and reads the rest away, so that its writer is never held up.
type capture struct {
	most int
	kept []byte
	over bool // there was more than most
	done chan struct{}
}

// captureFrom reads a stream until it ends.
func captureFrom(r io.Reader, most int) *capture {
	c := &capture{most: most, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		buffer := make([]byte, 64<<10)
		for total := 0; ; {
			n, err := r.Read(buffer)
			c.kept = append(c.kept, buffer[:min(n, c.most+slack-len(c.kept))]...)
			total += n
			c.over = c.over || total > c.most
			if err != nil {
				return
			}
		}
	}()
	return c
}

// text is what was kept, without our tokens: cut between characters, with a notice if something is missing. Output that is no text is
// given in base64.
func (c *capture) text(redact func(string) string) string {
	kept := []byte(redact(string(c.kept)))
	if c.over {
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
	if c.over {
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
