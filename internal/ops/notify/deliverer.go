// Package notify notifies people of the results of proposals: by an Apprise API server, by the apprise command, or by a
// signed JSON webhook. docs/guides/notifications.md is the contract for those who configure and receive it.
//
// A use case makes the notices of an event with a Deliverer, one for each target, and hands them to the ledger, which
// puts them into the store's outbox in the transaction that records the event. A Deliverer takes them from there
// afterwards. So a notice never fails or delays a pull request, one failing target never makes another one hear twice,
// and a process that is killed loses nothing.
//
// Delivery is at least once: a target that acted but could not say so is notified again, under the same
// Claudeops-Delivery. Order is not kept when a delivery had to be repeated; the message says when it happened.
//
// An entry of CLAUDEOPS_APPRISE_URLS that begins with http:// or https:// is an Apprise API server
// (github.com/caronc/apprise-api), whose path decides: .../notify/KEY has a configuration with its targets; .../notify
// is given each of the list's other URLs, or, if there are none, notifies those that its APPRISE_STATELESS_URLS name.
// Any other scheme (discord://, mailto://, apprises://, ...) is a notification URL for the apprise command, unless the
// list has a .../notify server. Web addresses that only some service understands (https://discord.com/api/webhooks/...)
// are refused.
//
// URLs hold tokens. Errors and log lines name a target by its name (webhook, apprise-discord) and, for HTTP, its host;
// they never hold a URL, an answer's body, or the output of the command.
package notify

import (
	"context"
	"errors"
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
	err = p.deliverDue(ctx)
	return p.delivered, p.pending, err
}

// Kick begins a pass behind the caller, now or after the present one. From the first Kick until Close there is another
// pass when a retry is due, and each minute, for what other processes have left. Before it nothing touches the outbox.
// It never blocks, and goes on after ctx has ended.
func (d *Deliverer) Kick(ctx context.Context) {
	if len(d.senders) == 0 {
		return
	}
	d.start.Do(func() { d.running.Go(func() { d.deliverLoop(context.WithoutCancel(ctx)) }) })
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

func (d *Deliverer) deliverLoop(ctx context.Context) {
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
	err := p.deliverDue(ctx)
	d.waiting = err != nil || p.pending > 0
	if err != nil {
		d.options.Log.Warn("notices cannot be read or settled", "error", err)
	}
	if err != nil || p.next.IsZero() {
		return passInterval
	}
	return min(passInterval, max(p.next.Sub(d.options.Now()), 0))
}

// pass is one walk through what is due.
type pass struct {
	*Deliverer
	queues map[string]*targetQueue // by target

	mu        sync.Mutex // guards the rest, while queues are worked on side by side
	delivered int
	pending   int
	next      time.Time // when the first retry is due; zero: there is none
	err       error     // of the outbox
}

// targetQueue holds the state of one target during a pass.
type targetQueue struct {
	target string
	sender Sender // nil if no target of this name is configured here
	queue  []opened
	nextAt time.Time // once the target has failed: when the notice before the next one is due; zero: it has not failed
}

// opened is a claimed notice, read.
type opened struct {
	notice   record.PendingNotice
	delivery Delivery
}

func (d *Deliverer) newPass() *pass {
	return &pass{Deliverer: d, queues: map[string]*targetQueue{}}
}

// deliverDue claims and delivers until nothing is due. What is not delivered is due later, so it comes to an end.
func (p *pass) deliverDue(ctx context.Context) error {
	if len(p.senders) == 0 {
		return nil
	}
	for {
		claimed, err := p.outbox.ClaimNotices(ctx, p.options.Now(), lease, batch)
		if err != nil {
			return err
		}
		p.deliver(ctx, claimed)
		if p.err != nil || ctx.Err() != nil || len(claimed) < batch {
			return errors.Join(p.err, ctx.Err())
		}
	}
}

// deliver tries each notice: those of a target one after the other, in their order, the targets side by side, so that a
// slow one holds up itself alone.
func (p *pass) deliver(ctx context.Context, claimed []record.PendingNotice) {
	for _, n := range claimed {
		target, delivery, err := decodeNotice(n.Payload)
		if err != nil {
			// Perhaps a newer program wrote it, and one will come that can read it.
			p.recordAttempt(ctx, n, target, &deliveryFailure{Text: err.Error()})
			continue
		}
		q := p.queues[target]
		if q == nil {
			q = &targetQueue{target: target, sender: p.senders[target]}
			p.queues[target] = q
		}
		q.queue = append(q.queue, opened{n, delivery})
	}
	var wg sync.WaitGroup
	for _, q := range p.queues {
		wg.Go(func() {
			for _, one := range q.queue {
				p.attemptDelivery(ctx, q, one)
			}
			q.queue = nil
		})
	}
	wg.Wait()
}

// attemptDelivery makes one attempt. After a target has failed, its other notices wait for a later pass: a target that
// stalls is not waited for again and again, one that asked for peace gets it.
func (p *pass) attemptDelivery(ctx context.Context, q *targetQueue, one opened) {
	switch {
	case q.sender == nil:
		p.recordAttempt(ctx, one.notice, q.target, &deliveryFailure{Text: "no target of this name is configured here"})
	case ctx.Err() != nil:
		p.recordSettlement(ctx, one.notice, q.target, record.NoticeSettlement{RetryAt: p.options.Now(),
			Error: "this program is ending"})
	case !q.nextAt.IsZero():
		q.nextAt = q.nextAt.Add(spacing)
		p.recordSettlement(ctx, one.notice, q.target, record.NoticeSettlement{
			RetryAt: q.nextAt, Error: "not tried: the target failed a moment before",
		})
	default:
		f := failureOf(q.sender.Send(ctx, one.delivery))
		if f != nil && !f.Permanent {
			q.nextAt = p.options.Now().Add(f.retryDelay())
		}
		p.recordAttempt(ctx, one.notice, q.target, f)
	}
}

// recordAttempt records the end of an attempt.
func (p *pass) recordAttempt(ctx context.Context, n record.PendingNotice, target string, f *deliveryFailure) {
	p.recordSettlement(ctx, n, target, settlement(n, f, p.options.Now(), p.options.Rand()))
}

// recordSettlement writes a settlement to the outbox, the counts and the log, even if the caller is gone meanwhile.
func (p *pass) recordSettlement(ctx context.Context, n record.PendingNotice, target string, s record.NoticeSettlement) {
	log := p.options.Log.With("notice", n.ID, "event", n.Event, "target", target)
	switch {
	case s.Delivered:
		log.Info("notice delivered")
	case s.GiveUp:
		log.Error("notice given up", "error", s.Error, "age", p.options.Now().Sub(n.CreatedAt).Round(time.Second).String())
	default:
		log.Warn("notice not delivered yet", "error", s.Error, "retry_at", s.RetryAt)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := p.outbox.SettleNotice(ctx, n.ID, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, err)
	switch {
	case s.Delivered:
		p.delivered++
	case !s.GiveUp:
		p.pending++
		if p.next.IsZero() || s.RetryAt.Before(p.next) {
			p.next = s.RetryAt
		}
	}
}

const (
	// maxAge is the maximum age of a notice that is tried again after a failed attempt.
	maxAge = 24 * time.Hour
	// maxPartial limits the attempts at a target that reached some of its recipients: each attempt notifies those again.
	maxPartial = 3
	// jitter is the fraction by which a wait may be shorter or longer than scheduled, so that attempts that failed
	// together are not repeated together.
	jitter = 0.2
	// spacing is the time between the notices of a target that were put off because another one of it had failed. It is
	// shorter than any wait after a failure, so that the one that failed does not stand before them again: perhaps it
	// is the only one that the target does not take.
	spacing = 5 * time.Second
)

// backoff returns the wait after an attempt that failed at this age of the notice. A notice that is tried from the
// beginning waits 10 s, 1 min, 5 min, 30 min, and then 2 h each time. It goes by age, since not each claim of a notice
// is an attempt.
func backoff(age time.Duration) time.Duration {
	switch {
	case age < 5*time.Second:
		return 10 * time.Second
	case age < 40*time.Second:
		return time.Minute
	case age < 4*time.Minute:
		return 5 * time.Minute
	case age < 25*time.Minute:
		return 30 * time.Minute
	default:
		return 2 * time.Hour
	}
}

// partialBackoff returns the wait after an attempt that told some of those behind a target: the few that are left must
// outlast more than a moment.
func partialBackoff(attempts int) time.Duration {
	if attempts == 0 {
		return 5 * time.Minute
	}
	return 2 * time.Hour
}

// settlement returns the settlement of a notice after an attempt, successful if f is nil. random, in [0,1), chooses
// within the jitter. The last attempt is maxAge after the notice was made, however long a target asked to wait; an
// older notice, which no process was there to send, gets one.
func settlement(n record.PendingNotice, f *deliveryFailure, now time.Time, random float64) record.NoticeSettlement {
	if f == nil {
		return record.NoticeSettlement{Delivered: true}
	}
	s := record.NoticeSettlement{Error: f.Text}
	last := n.CreatedAt.Add(maxAge)
	if f.Permanent || f.Partial && n.Attempts+1 >= maxPartial || !now.Before(last) {
		s.GiveUp = true
		return s
	}
	wait := backoff(now.Sub(n.CreatedAt))
	if f.Partial {
		wait = partialBackoff(n.Attempts)
	}
	wait = time.Duration(float64(wait) * (1 - jitter + 2*jitter*random))
	s.RetryAt = now.Add(max(wait, f.retryDelay()))
	if s.RetryAt.After(last) {
		s.RetryAt = last
	}
	return s
}
