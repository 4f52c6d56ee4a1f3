package door

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// accept gives each connection to take, until the listener is closed or ctx ends.
func accept(ctx context.Context, listener net.Listener, take func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if conn != nil {
				_ = conn.Close()
			}
			return
		case err != nil: // too many files are open, for instance
			const pause = 50 * time.Millisecond
			time.Sleep(pause)
		default:
			take(conn)
		}
	}
}

// end waits for connections that are told to end, for Limits.End at most; false if some go on.
func (h *Host) end(served *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		served.Wait()
	}()
	bound := time.NewTimer(h.options.Limits.End)
	defer bound.Stop()
	select {
	case <-done:
		return true
	case <-bound.C:
		return false
	}
}
