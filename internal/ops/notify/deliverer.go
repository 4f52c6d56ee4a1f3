package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Outbox stores notices. internal/records/store implements it. Its errors are *fault.Error with the code internal.
type Outbox interface {
	// ClaimNotices returns at most limit notices that are due at now, oldest first, and keeps them from other
	// claimants, in this process or another one, until they are settled or lease has passed.
	ClaimNotices(ctx context.Context, now time.Time, lease time.Duration, limit int) ([]record.PendingNotice, error)

	// SettleNotice records the result of an attempt: the notice is delivered, due again at s.RetryAt, or given up.
	SettleNotice(ctx context.Context, id int64, s record.NoticeSettlement) error
}

const (
	// batch is the number of notices that are claimed at once.
	batch = 16
	// lease is longer than a batch can take, even if each attempt takes as long as it may; see the next line.
	lease = 10 * time.Minute
	_     = uint64(lease - (batch+1)*sendTimeout) // does not compile if it is not
	// settleTimeout bounds the recording of an attempt, which happens even when the caller is gone.
	settleTimeout = 10 * time.Second
	// passTimeout bounds a pass behind a Kick: a command that ends waits for it.
	passTimeout = 10 * time.Second
	// passInterval is how long a Deliverer waits for a Kick before it looks for notices that other processes made.
	passInterval = time.Minute
)

// Options vary a Deliverer. The zero value is ready for use. The functions are called by several goroutines at once.
type Options struct {
	Now  func() time.Time // default: time.Now
	Rand func() float64   // in [0,1); default: math/rand/v2.Float64
	Log  *slog.Logger     // default: none
}

// Deliverer makes notices, and takes them from the outbox to their targets. It is safe for concurrent use; any number
// of them may work on one outbox. It implements record.Notifier.
type Deliverer struct {
	options Options
	outbox  Outbox
	senders map[string]Sender
	names   []string // of the senders, in their order

	start   sync.Once
	running sync.WaitGroup
	kick    chan struct{} // capacity 1: a pass is asked for
	stop    chan struct{}
	waiting bool // whether the last pass behind a Kick left something to a later one
}

// New makes a Deliverer. Senders are identified by their names.
func New(outbox Outbox, senders []Sender, o Options) *Deliverer {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Deliverer{
		options: o, outbox: outbox, senders: map[string]Sender{}, kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	for _, s := range senders {
		d.senders[s.Name()] = s
		d.names = append(d.names, s.Name())
	}
	return d
}

// Names returns the names of the targets; see Targets.Names.
func (d *Deliverer) Names() []string { return d.names }

// Notices implements record.Notifier.
func (d *Deliverer) Notices(event record.Event, a record.Attempt) []record.Notice {
	out, err := notices(fromAttempt(event, a), d.names...)
	if err != nil {
		d.options.Log.Error("no notice was made", "event", event, "request_id", a.RequestID, "error", err)
	}
	return out
}

// SessionNotices are those of the end of a session of an agent, one for each target; none of an end that nobody needs
// to be told of.
func (d *Deliverer) SessionNotices(r sessions.Record) []record.Notice {
	m, tell := fromSession(r)
	if !tell {
		return nil
	}
	out, err := notices(m, d.names...)
	if err != nil {
		d.options.Log.Error("no notice was made", "event", m.Event, "session", r.ID, "error", err)
	}
	return out
}

// Deliver is one pass: each notice that is due is tried once. delivered counts those that arrived, pending those that
// are to be tried again; given up ones are only in the log. err is a failure of the outbox or the end of ctx, never a
// failure of a target; what could not be settled is due again after ten minutes. Without senders it does nothing and
// does not touch the outbox, so that a process that has none leaves the notices to one that has.
func (d *Deliverer) Deliver(ctx context.Context) (delivered, pending int, err error) {
	p := d.newPass()
	err = p.run(ctx)
	return p.delivered, p.pending, err
}

// Kick begins a pass behind the caller, now or after the present one. From the first Kick until Close there is another
// pass when a retry is due, and each minute, for what other processes have left. Before it nothing touches the outbox.
// It never blocks, and goes on after ctx has ended.
func (d *Deliverer) Kick(ctx context.Context) {
	if len(d.senders) == 0 {
		return
	}
	d.start.Do(func() { d.running.Go(func() { d.run(context.WithoutCancel(ctx)) }) })
	select {
	case d.kick <- struct{}{}:
	default: // one is asked for already
	}
}

// Close lets the pass that is under way end, and makes a last one for what came behind it. It is called once, when no
// Kick comes any more. What could not be delivered waits for a later process.
func (d *Deliverer) Close() {
	close(d.stop)
	d.running.Wait()
	select {
	case <-d.kick:
		d.boundedPass(context.Background())
	default:
	}
	if d.waiting {
		d.options.Log.Warn("notices wait for a later process")
	}
}

func (d *Deliverer) run(ctx context.Context) {
	wait := passInterval
	for {
		select {
		case <-d.stop:
			return
		case <-d.kick:
		case <-time.After(wait):
		}
		wait = d.boundedPass(ctx)
	}
}

// boundedPass makes one pass and returns when the next one is due. It is never broken off but by its bound: an attempt
// that was not waited for would have to be made again.
func (d *Deliverer) boundedPass(ctx context.Context) (wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	p := d.newPass()
	err := p.run(ctx)
	d.waiting = err != nil || p.pending > 0
	if err != nil {
		d.options.Log.Warn("notices cannot be read or settled", "error", err)
	}
	if err != nil || p.next.IsZero() {
		return passInterval
	}
	return min(passInterval, max(p.next.Sub(d.options.Now()), 0))
}
