package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// readAhead is the size of the read buffer, in bytes.
const readAhead = 16 << 10

// events reads a stream of server-sent events as lines, one for each event: what `data: ` stands before. Our events have one such line; what
// else there is (comments, other fields) says nothing.
type events struct {
	body    io.Closer
	in      *bufio.Reader
	quiet   *time.Timer
	last    time.Time // when something was read
	within  bool      // a line of data was begun
	begun   bool      // a line of something else was begun
	waiting []byte    // of a line of data, that was read
	ended   bool
}

// newEvents reads a body. end is called when nothing has come for a time.
func newEvents(body io.ReadCloser, silent time.Duration, end func(error)) *events {
	quiet := time.AfterFunc(silent, func() { end(fmt.Errorf("nothing came for %s", silent)) })
	e := &events{body: body, quiet: quiet, last: time.Now()}
	e.in = bufio.NewReaderSize(&noticed{body, func() {
		quiet.Reset(silent)
		e.last = time.Now()
	}}, readAhead)
	return e
}

// shortSilence is what nothing is said of when an answer ends after it.
const shortSilence = 2 * time.Second

// over is the error for the end of the answer. What ends it after a silence again and again is a proxy's bound.
func (e *events) over() error {
	silent := time.Since(e.last)
	if silent < shortSilence {
		return io.EOF
	}
	return fmt.Errorf("the answer ended after %s in which nothing came; if that happens again and again, a proxy on the way ends what is silent: it has "+
		"to wait for 20s at least (nginx: proxy_read_timeout)", silent.Round(time.Second))
}

// noticed says when something was read.
type noticed struct {
	in   io.Reader
	tell func()
}

func (n *noticed) Read(p []byte) (int, error) {
	count, err := n.in.Read(p)
	if count > 0 {
		n.tell()
	}
	return count, err
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.waiting) == 0 {
		if err := e.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.waiting)
	e.waiting = e.waiting[n:]
	return n, nil
}

// next reads on to the next part of a line of data. A line that is cut off at the end of the stream stays without its line end, so that nobody
// takes it for a message.
func (e *events) next() error {
	if e.ended {
		return e.over()
	}
	part, err := e.in.ReadSlice('\n')
	full := errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !full {
		e.ended = true
		e.quiet.Stop()
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // the latter where the answer has chunks
			return err
		}
	}
	if !e.within && !e.begun {
		rest, found := bytes.CutPrefix(part, []byte("data:"))
		if found {
			part, e.within = bytes.TrimPrefix(rest, []byte(" ")), true
		}
	}
	if e.within {
		e.waiting = part
	}
	e.within, e.begun = e.within && full, !e.within && full
	return nil
}

// first reads the first event.
func (e *events) first() ([]byte, error) {
	var line []byte
	for !bytes.HasSuffix(line, []byte("\n")) {
		if len(line) > readAhead {
			return nil, errors.New("its first event is too long")
		}
		if err := e.next(); err != nil {
			return nil, err
		}
		line, e.waiting = append(line, e.waiting...), nil
	}
	return line, nil
}

func (e *events) close() error {
	e.quiet.Stop()
	return e.body.Close()
}
