package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"
)

const (
	readAhead = 64 << 10 // bytes of the read buffer
	keptHead  = 64 << 10 // bytes kept from the start of a line that is too long
	keptTail  = 2 << 10  // bytes kept from its end: more than the longest id needs
)

// frame is one line of input without its line ending.
type frame struct {
	raw     []byte // the whole line; of a line that is too long, its first keptHead bytes at most
	tail    []byte // the last bytes of a line that is too long, otherwise nil
	size    int64  // bytes of the whole line
	tooLong bool

	to    outlet          // for the answer to it; nil for the output of the connection
	scope uint64          // in which its id means something; 0 for the connection
	until context.Context // ends when the client takes a request back by going away; nil for one that says so //nolint:containedctx // of the request
}

// framer cuts a stream into lines and never holds more than limit bytes of one, plus the read buffer.
type framer struct {
	in    *bufio.Reader
	limit int
}

func newFramer(in io.Reader, limit int) *framer {
	return &framer{in: bufio.NewReaderSize(in, readAhead), limit: limit}
}

// next returns the next line. A last line without a newline counts; after it comes io.EOF. A line beyond the limit is
// consumed to its end and comes back marked. Any other read error discards the unfinished line.
func (f *framer) next() (frame, error) {
	line := lineBuffer{limit: f.limit}
	for {
		chunk, err := f.in.ReadSlice('\n')
		line.add(chunk)
		switch {
		case err == nil:
			return line.frame(), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && line.size > 0:
			return line.frame(), nil
		default:
			return frame{}, err
		}
	}
}

// lineBuffer gathers one line. Two bytes above the limit are room for CR LF.
type lineBuffer struct {
	limit   int
	size    int64
	kept    []byte
	tail    []byte
	tooLong bool
}

func (b *lineBuffer) add(chunk []byte) {
	b.size += int64(len(chunk))
	if !b.tooLong && len(b.kept)+len(chunk) <= b.limit+2 {
		b.reserve(len(chunk))
		b.kept = append(b.kept, chunk...)
		return
	}
	if !b.tooLong {
		b.overflow()
		b.kept = append(b.kept, chunk[:min(len(chunk), keptHead-len(b.kept))]...)
	}
	b.tail = append(b.tail, lastBytes(chunk, keptTail)...)
	b.tail = append(b.tail[:0], lastBytes(b.tail, keptTail)...)
}

// reserve doubles up to the limit, so that a long line costs at most twice its bytes in discarded buffers.
func (b *lineBuffer) reserve(n int) {
	need := len(b.kept) + n
	if need <= cap(b.kept) {
		return
	}
	grown := make([]byte, len(b.kept), max(need, min(2*cap(b.kept), b.limit+2)))
	copy(grown, b.kept)
	b.kept = grown
}

// overflow lets go of everything but the head and the tail.
func (b *lineBuffer) overflow() {
	b.tooLong = true
	b.tail = slices.Clone(lastBytes(b.kept, keptTail))
	b.kept = slices.Clone(b.kept[:min(len(b.kept), keptHead)])
}

func (b *lineBuffer) frame() frame {
	if !b.tooLong {
		line := trimEnding(b.kept)
		if len(line) <= b.limit {
			return frame{raw: line, size: int64(len(line))}
		}
		b.overflow()
	}
	tail := trimEnding(b.tail)
	return frame{raw: b.kept, tail: tail, size: b.size - int64(len(b.tail)-len(tail)), tooLong: true}
}

func trimEnding(line []byte) []byte {
	line, hadNewline := bytes.CutSuffix(line, []byte("\n"))
	if hadNewline {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	return line
}

func lastBytes(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// lineReader reads in a goroutine of its own, since a Read of the standard input cannot be cancelled.
type lineReader struct {
	in      io.Reader
	ready   chan lineOrError
	stopped chan struct{}
}

type lineOrError struct {
	frame
	err error // the last one
}

func readLines(in io.Reader, limit int) *lineReader {
	r := &lineReader{in: in, ready: make(chan lineOrError), stopped: make(chan struct{})}
	go r.readLoop(newFramer(in, limit))
	return r
}

func (r *lineReader) readLoop(framer *framer) {
	for {
		f, err := framer.next()
		select {
		case r.ready <- lineOrError{f, err}:
		case <-r.stopped:
			return
		}
		if err != nil {
			return
		}
	}
}

// stop ends the reader, at once if its Read can be interrupted.
func (r *lineReader) stop() {
	close(r.stopped)
	if d, ok := r.in.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = d.SetReadDeadline(time.Now()) // a reader that has no deadlines is left in its Read, as Serve documents
	}
}
