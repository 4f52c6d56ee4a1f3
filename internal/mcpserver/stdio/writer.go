package stdio

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
)

// writer owns the output: one goroutine, one Write per message.
type writer struct {
	out    io.Writer
	log    *slog.Logger
	notes  <-chan mcp.JSONRPCNotification // sent to all clients
	lines  chan outLine
	gone   <-chan struct{} // closed when all waiting must end
	quit   chan struct{}   // closed by the owner after the last line
	done   chan struct{}   // closed when run has returned
	failed chan struct{}   // closed after a failed Write, when err is set
	err    error
	also   func(mcp.JSONRPCNotification) // also gets notifications to all clients; nil for none
}

// outlet takes the output of one message: lines, and the end.
type outlet interface {
	send(line []byte)
	end()
}

// outLine is a line on its way out.
type outLine struct {
	text    []byte
	written chan struct{} // closed after the attempt to write it
}

func newWriter(out io.Writer, notes <-chan mcp.JSONRPCNotification, gone <-chan struct{}, log *slog.Logger) *writer {
	return &writer{
		out: out, log: log, notes: notes, gone: gone, lines: make(chan outLine),
		quit: make(chan struct{}), done: make(chan struct{}), failed: make(chan struct{}),
	}
}

// run writes until quit is closed or a Write fails.
func (w *writer) run() {
	defer close(w.done)
	for {
		select {
		case note := <-w.notes:
			w.note(note)
		case line := <-w.lines:
			w.pendingNotes() // sent before the answer, so written before it
			w.write(line.text)
			close(line.written)
		case <-w.quit:
			w.pendingNotes()
			return
		case <-w.failed:
			return
		}
	}
}

func (w *writer) pendingNotes() {
	for range len(w.notes) {
		w.note(<-w.notes)
	}
}

func (w *writer) note(note mcp.JSONRPCNotification) {
	if w.also != nil {
		w.also(note)
	}
	line, err := encodeLine(note)
	if err != nil {
		w.log.Error("cannot encode a notification", slog.String("method", note.Method), slog.Any("error", err))
		return
	}
	w.write(line)
}

func (w *writer) write(line []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.out.Write(line); err != nil {
		w.err = err
		close(w.failed)
	}
}

// send writes one encoded line and waits until that is done, so that no consequence of the line can overtake it. The
// line is dropped if the output is broken or the time of the connection is over.
func (w *writer) send(text []byte) {
	line := outLine{text: text, written: make(chan struct{})}
	select {
	case w.lines <- line:
	case <-w.failed:
		return
	case <-w.gone:
		return
	}
	select {
	case <-line.written:
	case <-w.gone:
	}
}

// end implements outlet. It does nothing, since the output of other messages follows.
func (w *writer) end() {}

// encodeLine encodes v as one line of JSON with its newline. '<', '>' and '&' are not escaped, as both json.Marshal and
// the MarshalJSON methods of mcp-go would have it; U+2028 and U+2029 are, since some readers take them for line ends.
func encodeLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(line, []byte(`\u00`)) {
		line, err = jsontext.AppendFormat(nil, line, jsontext.AllowDuplicateNames(true),
			jsontext.PreserveRawStrings(false), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(true))
	}
	return append(line, '\n'), err
}
