// This file prevents a log without a reader from blocking the program that writes it. A pipe whose reader has stopped
// fills up, and then every write waits for ever. So lines go through a bounded queue: when it is full, they are
// dropped and counted.

package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Bounds of what waits to be written.
const (
	maxLines = 1000
	maxBytes = 1 << 20
)

// logWriter writes to another writer in the background, in order. It is safe for concurrent use.
type logWriter struct {
	out     io.Writer
	dropped func(lines int) []byte

	mu      sync.Mutex
	waiting []logLine
	bytes   int // of waiting
	lost    int // lines that were dropped since the last that was written
	closed  bool
	wake    chan struct{} // has room for one
	done    chan struct{} // closed when all has been written after Close
}

// logLine is a line that waits, or somebody who waits until all lines before are written.
type logLine struct {
	line    []byte
	reached chan struct{} // nil for a line
}

// newLogWriter makes a Writer. droppedLine makes the line that stands in place of lines that were dropped; nil for one
// in plain text.
func newLogWriter(out io.Writer, droppedLine func(lines int) []byte) *logWriter {
	if droppedLine == nil {
		droppedLine = func(lines int) []byte {
			return fmt.Appendf(nil, "%d log lines were dropped: nobody read them\n", lines)
		}
	}
	q := &logWriter{out: out, dropped: droppedLine, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.writeLoop()
	return q
}

// Write queues p, which is one line or several, or drops it if the queue is full. It never waits and never fails.
func (q *logWriter) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) >= maxLines || q.bytes+len(p) > maxBytes {
		q.lost++
		return len(p), nil
	}
	q.waiting = append(q.waiting, logLine{line: append([]byte(nil), p...)})
	q.bytes += len(p)
	q.signal()
	return len(p), nil
}

// signal wakes the writing goroutine.
func (q *logWriter) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Flush waits until what was written before is out, for as long as bound.
func (q *logWriter) Flush(bound time.Duration) {
	reached := make(chan struct{})
	q.mu.Lock()
	q.waiting = append(q.waiting, logLine{reached: reached})
	q.signal()
	q.mu.Unlock()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-reached:
	case <-timer.C:
	}
}

// Close writes what waits, for as long as bound. Later writes are dropped. It may be called once.
func (q *logWriter) Close(bound time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.signal()
	q.mu.Unlock()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
	}
}

// writeLoop writes until the queue is closed and empty. A line that cannot be written is lost: there is nowhere to say
// so.
func (q *logWriter) writeLoop() {
	defer close(q.done)
	for {
		next, more := q.next()
		switch {
		case next.reached != nil:
			close(next.reached)
		case next.line != nil:
			_, _ = q.out.Write(next.line)
		case !more:
			return
		default:
			<-q.wake
		}
	}
}

// next takes the first line, or the one that stands for those that were dropped after all that wait. more is false
// when there will be none.
func (q *logWriter) next() (e logLine, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		e = q.waiting[0]
		q.waiting, q.bytes = q.waiting[1:], q.bytes-len(e.line)
		return e, true
	}
	if q.lost > 0 {
		e.line, q.lost = q.dropped(q.lost), 0
		return e, true
	}
	return e, !q.closed
}
