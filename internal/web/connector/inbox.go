package connector

import (
	"context"
	"io"
	"os"
	"sync"
	"time"
)

// inbox is where the requests of a client become the one stream that the loop reads. It holds one chunk.
type inbox struct {
	mu      sync.Mutex
	chunk   []byte // not read yet
	ended   bool   // nothing follows
	stopped bool   // nobody reads any more
	changed chan struct{}
}

func newInbox() *inbox { return &inbox{changed: make(chan struct{})} }

// change tells those who wait. The caller holds mu.
func (b *inbox) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// fate is what became of a chunk.
type fate int

const (
	given  fate = iota
	full        // the one before is not read yet
	closed      // nobody reads any more
)

// give waits until the chunk before was read, and leaves this one; nothing of it unless it is given.
func (b *inbox) give(ctx context.Context, chunk []byte) fate {
	for {
		b.mu.Lock()
		switch {
		case b.ended || b.stopped:
			b.mu.Unlock()
			return closed
		case len(b.chunk) == 0:
			b.chunk = chunk
			b.change()
			b.mu.Unlock()
			return given
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return full
		}
	}
}

// end says that nothing follows what was given.
func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		b.change()
	}
}

// Read implements io.Reader.
func (b *inbox) Read(p []byte) (int, error) {
	for {
		b.mu.Lock()
		switch {
		case b.stopped:
			b.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(b.chunk) > 0:
			n := copy(p, b.chunk)
			b.chunk = b.chunk[n:]
			if len(b.chunk) == 0 {
				b.change()
			}
			b.mu.Unlock()
			return n, nil
		case b.ended:
			b.mu.Unlock()
			return 0, io.EOF
		}
		changed := b.changed
		b.mu.Unlock()
		<-changed
	}
}

// SetReadDeadline ends every Read if the time has passed. The loop sets no other one.
func (b *inbox) SetReadDeadline(at time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if stop := !at.IsZero() && !at.After(time.Now()); stop != b.stopped {
		b.stopped = stop
		b.change()
	}
	return nil
}
