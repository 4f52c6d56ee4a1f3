package stdio

import (
	"io"
	"time"
)

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
	go r.run(newFramer(in, limit))
	return r
}

func (r *lineReader) run(framer *framer) {
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
