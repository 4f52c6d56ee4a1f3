package door

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// calling counts a call of a tool until it has ended.
func (c *connection) calling() (ended func()) {
	c.calls.Add(1)
	var once sync.Once
	return func() { once.Do(func() { c.calls.Add(-1) }) }
}

// record keeps a connection in the records, and cuts it off when somebody asks for that there, until over is called.
// The connection need not wait for the records; what cannot be read or written is tried again.
func (h *Host) record(ctx context.Context, c *connection) (over func()) {
	records := h.options.Records
	if records == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // a connection whose calls go on after ctx is one still
	var keeping sync.WaitGroup
	keeping.Go(func() { h.keep(ctx, c) })
	return func() {
		stop()
		keeping.Wait()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), rowTime)
		defer cancel()
		if err := records.CloseConnection(last, c.ID); err != nil {
			h.options.Log.Warn("the end of an agent's connection could not be recorded", "connection", c.ID, "error",
				fault.From(err).Message)
		}
	}
}

// keep does the work of record until ctx ends.
func (h *Host) keep(ctx context.Context, c *connection) {
	ticker := time.NewTicker(h.options.Limits.Look)
	defer ticker.Stop()
	for known := false; ; {
		var err error
		known, err = h.look(ctx, c, known)
		if err != nil && ctx.Err() == nil {
			h.options.Log.Warn("not recorded who is connected", "connection", c.ID, "error", fault.From(err).Message)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look records a connection that is not known yet, and obeys requests recorded for one that is.
func (h *Host) look(ctx context.Context, c *connection, known bool) (bool, error) {
	now := c.Connection
	now.Calls = int(c.calls.Load())
	if !known {
		err := h.options.Records.OpenConnection(ctx, now)
		return err == nil, err
	}
	known, cut, err := h.options.Records.HeedConnection(ctx, c.ID, now.Calls)
	if err != nil {
		return true, err
	}
	if cut {
		h.Cut(c.ID)
	}
	return known, nil
}
