package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Bounds of what is read and kept of an agent's output, in bytes.
const (
	maxLine   = 1 << 20 // of one line; the rest of a longer one is skipped
	maxStored = 4 << 20 // of all events of a session
	maxText   = 8 << 10 // of one event's text
	maxReport = 32 << 10
	maxStderr = 4 << 10
)

// readLines calls line for each line of r, without its end, until r ends. Of a line longer than maxLine only the
// beginning is handed on, with cut set. The slice is valid during the call.
func readLines(r io.Reader, line func(text []byte, cut bool)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var held []byte
	cut := false
	for {
		piece, err := in.ReadSlice('\n')
		room := maxLine - len(held)
		if len(bytes.TrimRight(piece, "\r\n")) > room {
			cut = true
			piece = piece[:room]
		}
		held = append(held, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := bytes.TrimSpace(held); len(text) > 0 {
			line(text, cut)
		}
		held, cut = held[:0], false
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct{ data []byte }

// Write implements io.Writer. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if over := len(t.data) - maxStderr; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// firstRunes returns at most limit bytes of text, cut between runes.
func firstRunes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}
