// Package auditsink exports the heads of the audit to places outside the records, and compares the audit with the
// exported heads. A head is the number, hash and time of a row, without its contents. Anyone who can write the records
// could replace the whole chain of hashes by another valid one, but cannot take back the exported heads.
//
// The audit itself is the queue: what a sink has taken is noted beside it, and what follows is exported by the next
// process that adds a row, by `claudeops serve`, and by `claudeops audit verify`. So nothing is lost when a process is
// killed between a row and its export, or while a sink is away, and a head may reach a sink twice.
package auditsink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

const (
	atOnce      = 500              // heads in one message
	localBound  = 5 * time.Second  // how long the writer of a row waits for files
	remoteBound = 30 * time.Second // how long one export to another sink may take
	closeBound  = 3 * time.Second  // how long a process that ends waits for other sinks
	retryEvery  = 30 * time.Second // how often Keep looks for heads that are still to be exported
)

// Exporter exports the heads of the audit to sinks. It is safe for concurrent use, and many processes may export the
// same audit.
type Exporter struct {
	audit    Audit
	warn     func(ctx context.Context, sink, problem string)
	sinks    []*exportTarget
	Problems []string // addresses that were not understood, in sentences without the addresses

	kick      chan struct{} // has room for one
	begin     sync.Once     // of the goroutine for sinks that are exported to in the background
	closing   chan struct{}
	closeOnce sync.Once
	done      chan struct{} // closed when that goroutine has ended
}

// exportTarget is a sink, with what is known of it in this process.
type exportTarget struct {
	sink
	mu      sync.Mutex // held while exporting
	problem string     // the last one that was reported
}

// New makes an Exporter. It contacts nothing.
func New(o Options) *Exporter {
	e := &Exporter{audit: o.Audit, warn: o.Warn, kick: make(chan struct{}, 1), closing: make(chan struct{}),
		done: make(chan struct{})}
	for i, address := range o.Addresses {
		s, err := parseSink(address, o)
		if err != nil {
			e.Problems = append(e.Problems, fmt.Sprintf("CLAUDEOPS_AUDIT_SINK, entry %d: %s", i+1, err))
			continue
		}
		e.sinks = append(e.sinks, &exportTarget{sink: s})
	}
	return e
}

// Names returns the names of the sinks.
func (e *Exporter) Names() (out []string) {
	for _, t := range e.sinks {
		out = append(out, t.name())
	}
	return out
}

// Appended must be called after rows were added. It exports to files before it returns, and to others in the
// background; the context's end does not stop it. A failure is logged, recorded, and tried again later.
func (e *Exporter) Appended(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), localBound)
	defer cancel()
	remote := false
	for _, t := range e.sinks {
		if !t.local() {
			remote = true
			continue
		}
		_ = e.export(ctx, t) // told and noted
	}
	if remote {
		e.begin.Do(func() { go e.background() })
		select {
		case e.kick <- struct{}{}:
		default:
		}
	}
}

// background exports to the non-local sinks until Close.
func (e *Exporter) background() {
	defer close(e.done)
	for {
		select {
		case <-e.kick:
			e.exportRemote()
		case <-e.closing:
			select {
			case <-e.kick:
				e.exportRemote()
			default:
			}
			return
		}
	}
}

func (e *Exporter) exportRemote() {
	ctx, cancel := context.WithTimeout(context.Background(), remoteBound)
	defer cancel()
	for _, t := range e.sinks {
		if !t.local() {
			_ = e.export(ctx, t)
		}
	}
}

// Close waits a few seconds at most for sinks in the background. What they have not taken by then, the next process
// exports.
func (e *Exporter) Close() {
	e.closeOnce.Do(func() { close(e.closing) })
	e.begin.Do(func() { close(e.done) })
	select {
	case <-e.done:
	case <-time.After(closeBound):
	}
}

// Keep exports what other processes have left, now and every 30 seconds, until ctx ends.
func (e *Exporter) Keep(ctx context.Context) {
	if len(e.sinks) == 0 {
		return
	}
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	for {
		bound, cancel := context.WithTimeout(ctx, remoteBound)
		_ = e.Export(bound) // told and noted
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Export exports to every sink what it has not taken yet. The error names each that failed: upstream_error, or
// misconfigured for one that does not hold what it has taken.
func (e *Exporter) Export(ctx context.Context) error {
	var errs []error
	for _, t := range e.sinks {
		if err := e.export(ctx, t); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Required is Export for a policy that lets nothing be proposed unless every head was exported.
func (e *Exporter) Required(ctx context.Context) error {
	switch {
	case len(e.Problems) > 0:
		return fault.New(fault.Misconfigured, "%s", e.Problems[0])
	case len(e.sinks) == 0:
		return fault.New(fault.Misconfigured,
			"the policy requires a sink for the audit (audit.require_sink), and CLAUDEOPS_AUDIT_SINK names none")
	}
	ctx, cancel := context.WithTimeout(ctx, localBound)
	defer cancel()
	for _, t := range e.sinks {
		if err := e.export(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// export exports to one sink what it has not taken yet, and notes and tells how that went.
func (e *Exporter) export(ctx context.Context, t *exportTarget) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := e.catchUp(ctx, t)
	if ctx.Err() != nil && err != nil {
		err = fault.New(fault.UpstreamError, "the sink %s of the audit did not take its head in time", t.name())
	}
	problem := ""
	if err != nil {
		problem = fault.From(err).Message
	}
	if problem == t.problem {
		return err
	}
	t.problem = problem
	ctx = context.WithoutCancel(ctx)
	e.warn(ctx, t.name(), problem)
	if problem != "" {
		if noted := e.audit.ExportFailed(ctx, t.name(), problem); noted != nil {
			e.warn(ctx, t.name(), fault.From(noted).Message)
		}
	}
	return err
}

func (e *Exporter) catchUp(ctx context.Context, t *exportTarget) (err error) {
	known, err := e.audit.Export(ctx, t.name())
	if err != nil {
		return err
	}
	if !t.local() && known.Problem == "" { // a file has to be looked at, whatever is noted
		if seq, hash, err := e.audit.Head(ctx); err != nil || seq == known.Last.Seq && hash == known.Last.Hash {
			return err
		}
	}
	d, err := t.openDelivery(ctx)
	if err != nil {
		return fault.Wrap(err, fault.UpstreamError, "the audit could not be exported to the sink %s: %s", t.name(), err)
	}
	defer func() {
		if ended := d.close(); err == nil && ended != nil {
			err = fault.Wrap(ended, fault.UpstreamError, "the audit could not be exported to the sink %s: %s", t.name(), ended)
		}
	}()
	return e.exportTo(ctx, t, d)
}

// exportTo exports from where the sink stands.
func (e *Exporter) exportTo(ctx context.Context, t *exportTarget, d delivery) error {
	from, err := e.position(ctx, t, d)
	if err != nil {
		return err
	}
	for {
		heads, err := e.audit.HeadsAfter(ctx, from.Seq, atOnce)
		if err != nil {
			return err
		}
		if len(heads) == 0 {
			return e.noteWorks(ctx, t, from)
		}
		if err := d.send(ctx, heads); err != nil {
			return fault.Wrap(err, fault.UpstreamError, "the audit could not be exported to the sink %s: %s", t.name(), err)
		}
		from = heads[len(heads)-1]
		if err := e.audit.Exported(ctx, t.name(), from); err != nil {
			return err
		}
	}
}

// noteWorks notes that a sink works again whose failure another process has noted.
func (e *Exporter) noteWorks(ctx context.Context, t *exportTarget, at record.Head) error {
	known, err := e.audit.Export(ctx, t.name())
	if err != nil || known.Problem == "" && known.Last == at {
		return err
	}
	if known.Problem == "" && known.Last.Seq >= at.Seq {
		return nil
	}
	return e.audit.Exported(ctx, t.name(), at)
}

// position returns the last head that the sink has taken. It is misconfigured if the sink does not hold what it has
// taken, or the audit no longer has it: then nothing more is exported to it, so that it stays as it is, until the
// operator has looked and names another one.
func (e *Exporter) position(ctx context.Context, t *exportTarget, d delivery) (record.Head, error) {
	noted, err := e.audit.Export(ctx, t.name())
	if err != nil {
		return record.Head{}, err
	}
	last, says, err := d.last()
	if err != nil {
		return record.Head{}, fault.Wrap(err, fault.Misconfigured, "the audit could not be exported to the sink %s: %s",
			t.name(), err)
	}
	hashes, err := e.audit.HashesOf(ctx, []int64{max(noted.Last.Seq, 1), max(last.Seq, 1)})
	if err != nil {
		return record.Head{}, err
	}
	switch {
	case says && last.Seq < noted.Last.Seq:
		return record.Head{}, fault.New(fault.Misconfigured,
			"the sink %s ends with row %d of the audit, and had taken row %d: it was shortened or replaced. "+
				"Run `claudeops audit verify`", t.name(), last.Seq, noted.Last.Seq)
	case says && last.Seq > 0 && hashes[last.Seq] != last.Hash:
		return record.Head{}, notAsExported(t.name(), last.Seq)
	case noted.Last.Seq > 0 && hashes[noted.Last.Seq] != noted.Last.Hash:
		return record.Head{}, notAsExported(t.name(), noted.Last.Seq)
	case says: // the process that exported it may have been killed before it recorded that
		return last, nil
	}
	return noted.Last, nil
}

func notAsExported(sink string, seq int64) error {
	return fault.New(fault.Misconfigured,
		"the audit does not have row %d as it was exported to the sink %s: rows were cut off, or the chain was written "+
			"anew. Run `claudeops audit verify`", seq, sink)
}

// logEvery is the interval at which a Log checks for rows that other processes have added.
const logEvery = 2 * time.Second

// Log gives the head of each row of the audit to a function, whichever process has added it, from the head that the
// audit has when it begins. It is for the log of a server.
type Log struct {
	Audit Audit
	Tell  func(h record.Head)

	seen  int64
	begun bool
}

// Keep logs rows until ctx ends.
func (l *Log) Keep(ctx context.Context) {
	ticker := time.NewTicker(logEvery)
	defer ticker.Stop()
	for {
		l.Catch(ctx)
		select {
		case <-ctx.Done():
			bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
			l.Catch(bound) // those of what was answered last
			cancel()
			return
		case <-ticker.C:
		}
	}
}

// Catch logs the rows that were added since the last call. The first call logs only the last row. What cannot be read
// is logged later.
func (l *Log) Catch(ctx context.Context) {
	if !l.begun {
		seq, _, err := l.Audit.Head(ctx)
		if err != nil {
			return
		}
		l.seen, l.begun = max(seq-1, 0), true
	}
	for {
		heads, err := l.Audit.HeadsAfter(ctx, l.seen, atOnce)
		if err != nil || len(heads) == 0 {
			return
		}
		for _, h := range heads {
			l.Tell(h)
			l.seen = h.Seq
		}
	}
}
