package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/claudeops/claudeops/internal/record"
)

// Outbox is where notices wait. internal/store implements it. Its errors are *fault.Error with the code internal.
type Outbox interface {
	// ClaimNotices returns at most limit notices that are due at now, oldest first, and keeps them from other
	// claimants, in this process or another one, until they are settled or lease has passed.
	ClaimNotices(ctx context.Context, now time.Time, lease time.Duration, limit int) ([]record.PendingNotice, error)

	// SettleNotice records what became of an attempt: the notice is delivered, due again at s.RetryAt, or given up.
	SettleNotice(ctx context.Context, id int64, s record.NoticeSettlement) error
}

const (
	// batch is how many notices are claimed at once.
	batch = 16
	// lease is longer than a batch can take, even if each attempt takes as long as it may; see the next line.
	lease = 10 * time.Minute
	_     = uint64(lease - (batch+1)*sendTimeout) // does not compile if it is not
	// settleTimeout bounds the recording of an attempt, which happens even when the caller is gone.
	settleTimeout = 10 * time.Second
)

// Options vary a Deliverer. The zero value is ready for use. The functions are called by several goroutines at once.
type Options struct {
	Now   func() time.Time                     // default: time.Now
	After func(time.Duration) <-chan time.Time // default: time.After
	Rand  func() float64                       // in [0,1); default: math/rand/v2.Float64
	Log   *slog.Logger                         // default: none
	// Interval is how long Run waits when nothing wakes it, for notices that other processes made. Default: 1 min.
	Interval time.Duration
}

// Deliverer takes notices from the outbox to their targets. It is safe for concurrent use; any number of them may work
// on one outbox.
type Deliverer struct {
	options Options
	outbox  Outbox
	senders map[string]Sender
	kick    chan struct{}
}

// New makes a Deliverer. Senders are told apart by their names.
func New(outbox Outbox, senders []Sender, o Options) *Deliverer {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Interval <= 0 {
		o.Interval = time.Minute
	}
	d := &Deliverer{options: o, outbox: outbox, senders: map[string]Sender{}, kick: make(chan struct{}, 1)}
	for _, s := range senders {
		d.senders[s.Name()] = s
	}
	return d
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

// Kick makes Run begin a pass now, or another one after the present one. It never blocks.
func (d *Deliverer) Kick() {
	select {
	case d.kick <- struct{}{}:
	default: // one is waiting already
	}
}

// Run delivers until ctx ends: at once, at each Kick, when a retry is due, and after each Interval. A failure of the
// outbox is logged, and tried again after Interval or at the next Kick.
func (d *Deliverer) Run(ctx context.Context) {
	if len(d.senders) == 0 {
		return
	}
	for {
		p := d.newPass()
		err := p.run(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := d.options.Interval
		if err != nil {
			d.options.Log.Error("notices cannot be read or settled", "error", err)
		} else if !p.next.IsZero() {
			wait = min(wait, max(p.next.Sub(d.options.Now()), 0))
		}
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
		case <-d.options.After(wait):
		}
	}
}
