package connect

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// readAhead is the size of the read buffers, in bytes.
const readAhead = 16 << 10

// piece is a whole message with its line end; or a part of one that is longer than MaxMessage.
type piece struct {
	text  []byte
	part  bool // of a longer message
	last  bool // its last part
	ended bool // there is no more; text is empty
}

// reader reads messages in a goroutine of its own, one ahead at most.
type reader struct {
	pieces  chan piece
	stopped chan struct{}
}

func newReader(in io.Reader) *reader {
	r := &reader{pieces: make(chan piece), stopped: make(chan struct{})}
	go r.run(bufio.NewReaderSize(in, readAhead))
	return r
}

// stop lets the goroutine end at its next message. A Read that is under way is left behind.
func (r *reader) stop() { close(r.stopped) }

func (r *reader) run(in *bufio.Reader) {
	defer r.give(piece{ended: true})
	var line []byte
	long := false
	for {
		chunk, err := in.ReadSlice('\n')
		line = append(line, chunk...)
		full := errors.Is(err, bufio.ErrBufferFull)
		long = long || len(line) > MaxMessage+2 // and CR LF
		switch {
		case full && !long:
			continue
		case long:
			if !r.give(piece{text: line, part: true, last: !full}) {
				return
			}
			long = full
		case len(line) > 0:
			if line[len(line)-1] != '\n' { // the last one
				line = append(line, '\n')
			}
			if !r.give(piece{text: line}) {
				return
			}
		}
		if err != nil && !full {
			return
		}
		line = nil
	}
}

func (r *reader) give(p piece) bool {
	select {
	case r.pieces <- p:
		return true
	case <-r.stopped:
		return false
	}
}

// writer writes whole messages, from several goroutines.
type writer struct {
	mu     sync.Mutex
	out    io.Writer
	failed error
}

// write writes a message; false if the reader is gone.
func (w *writer) write(line []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		_, w.failed = w.out.Write(line)
	}
	return w.failed == nil
}

// broken reports whether the reader is gone.
func (w *writer) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}
