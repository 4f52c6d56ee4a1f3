package mcphttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Bounds of what a stream remembers. An answer is not bounded by them, since the loop bounds it.
const maxEvents = 256

// stream holds the output for one message, or unsolicited notifications, in order. A writer never waits for a reader.
type stream struct {
	id int // among those of the session; 0 for unsolicited notifications

	mu      sync.Mutex
	lines   [][]byte
	dropped int // lines that are remembered no more
	bytes   int
	ended   time.Time // zero while something may follow
	changed chan struct{}
	reading bool
	written bool // all of it, to a client
}

func newStream(id int) *stream { return &stream{id: id, changed: make(chan struct{})} }

// appendLine appends a line, which is the stream's from then on.
func (t *stream) appendLine(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line = bytes.TrimSuffix(line, []byte("\n"))
	t.lines = append(t.lines, line)
	t.bytes += len(line)
	if len(t.lines) > maxEvents {
		t.bytes -= len(t.lines[0])
		t.lines, t.dropped = t.lines[1:], t.dropped+1
	}
	t.wakeReaders()
}

// Write implements io.Writer for a stream of whole lines.
func (t *stream) Write(line []byte) (int, error) {
	t.appendLine(bytes.Clone(line))
	return len(line), nil
}

// markComplete says that nothing follows.
func (t *stream) markComplete(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended.IsZero() {
		t.ended = now
		t.wakeReaders()
	}
}

// wakeReaders wakes the readers. The caller holds mu.
func (t *stream) wakeReaders() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// linesAfter returns the lines after the first n, whether the stream has ended, and a channel that is closed at the
// next change.
func (t *stream) linesAfter(n int) (lines [][]byte, ended bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines[min(max(n-t.dropped, 0), len(t.lines)):], !t.ended.IsZero(), t.changed
}

// wrote notes that a client was written all of a stream that has ended.
func (t *stream) wrote() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = true
}

// began returns the number of dropped lines.
func (t *stream) began() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropped
}

// claimReader makes the caller the one reader; false if there is one.
func (t *stream) claimReader() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading {
		return false
	}
	t.reading = true
	return true
}

func (t *stream) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading = false
}

// alone waits for an answer that comes alone: the only line of a stream that has ended. It is false where notifications
// came before it, or it takes longer than within, or the client has gone.
func (t *stream) alone(ctx context.Context, within time.Duration) (line []byte, only bool) {
	bound, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	lines := t.whole(bound)
	switch {
	case lines == nil || len(lines) > 1:
		return nil, false
	case len(lines) == 0:
		return nil, true
	}
	return lines[0], true
}

// whole waits until nothing more is said, and is all that was; nil if ctx ends before.
func (t *stream) whole(ctx context.Context) [][]byte {
	for {
		lines, ended, changed := t.linesAfter(0)
		if ended {
			return append([][]byte{}, lines...)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// events writes server-sent events.
type events struct {
	control *http.ResponseController
	out     io.Writer
	bound   time.Duration // for each piece of a write
	numbers bool          // events have ids, so that a client can ask for what it has missed
}

func newEvents(w io.Writer, bound time.Duration, numbers bool) (*events, error) {
	response, ok := w.(http.ResponseWriter)
	if !ok {
		return nil, http.ErrNotSupported
	}
	e := &events{control: http.NewResponseController(response), out: w, bound: bound, numbers: numbers}
	return e, e.control.SetReadDeadline(time.Time{}) // the end of the request's time would end the connection
}

// follow writes what follows the first n lines of a stream, and a comment where nothing does for a time, until the
// stream ends, ending is closed or the client has gone.
func (e *events) follow(ctx context.Context, t *stream, n int, heartbeat time.Duration, ending <-chan struct{}) error {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	n = max(n, t.began())
	for {
		lines, ended, changed := t.linesAfter(n)
		for _, line := range lines {
			n++
			if err := e.event(t.id, n, line); err != nil {
				return err
			}
		}
		if len(lines) > 0 {
			continue
		}
		if ended {
			t.wrote()
			return nil
		}
		select {
		case <-changed:
		case <-ticker.C:
			if err := e.writeParts([]byte(": still here\n\n")); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		case <-ending:
			return nil
		}
	}
}

// event writes a line as the nth of a stream.
func (e *events) event(stream, n int, line []byte) error {
	var head []byte
	if e.numbers {
		head = fmt.Appendf(nil, "id: %d.%d\n", stream, n)
	}
	return e.writeParts(append(head, "data: "...), line, []byte("\n\n"))
}

// sendPrimingEvent writes an event without data, so that a client knows from the beginning where to take up the stream
// again.
func (e *events) sendPrimingEvent(stream int) error {
	return e.writeParts(fmt.Appendf(nil, "id: %d.0\ndata: \n\n", stream))
}

// piece is the number of bytes that are written within the bound.
const piece = 64 << 10

// writeParts writes parts and flushes. The deadline is the network's, so it is of the real clock.
func (e *events) writeParts(parts ...[]byte) error {
	for _, part := range parts {
		for len(part) > 0 {
			now := part[:min(len(part), piece)]
			part = part[len(now):]
			if err := e.control.SetWriteDeadline(time.Now().Add(e.bound)); err != nil {
				return err
			}
			if _, err := e.out.Write(now); err != nil {
				return err
			}
		}
	}
	return e.control.Flush()
}
