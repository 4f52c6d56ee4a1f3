package notify

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

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

// run claims and delivers until nothing is due. What is not delivered is due later, so it comes to an end.
func (p *pass) run(ctx context.Context) error {
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
		target, delivery, err := open(n.Payload)
		if err != nil {
			// Perhaps a newer program wrote it, and one will come that can read it.
			p.settle(ctx, n, target, &failure{Text: err.Error()})
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
				p.try(ctx, q, one)
			}
			q.queue = nil
		})
	}
	wg.Wait()
}

// try makes one attempt. After a target has failed, its other notices wait for a later pass: a target that stalls is
// not waited for again and again, one that asked for peace gets it.
func (p *pass) try(ctx context.Context, q *targetQueue, one opened) {
	switch {
	case q.sender == nil:
		p.settle(ctx, one.notice, q.target, &failure{Text: "no target of this name is configured here"})
	case ctx.Err() != nil:
		p.record(ctx, one.notice, q.target, record.NoticeSettlement{RetryAt: p.options.Now(),
			Error: "this program is ending"})
	case !q.nextAt.IsZero():
		q.nextAt = q.nextAt.Add(spacing)
		p.record(ctx, one.notice, q.target, record.NoticeSettlement{
			RetryAt: q.nextAt, Error: "not tried: the target failed a moment before",
		})
	default:
		f := failureOf(q.sender.Send(ctx, one.delivery))
		if f != nil && !f.Permanent {
			q.nextAt = p.options.Now().Add(f.wait())
		}
		p.settle(ctx, one.notice, q.target, f)
	}
}

// settle records the end of an attempt.
func (p *pass) settle(ctx context.Context, n record.PendingNotice, target string, f *failure) {
	p.record(ctx, n, target, settlement(n, f, p.options.Now(), p.options.Rand()))
}

// record writes a settlement to the outbox, the counts and the log, even if the caller is gone meanwhile.
func (p *pass) record(ctx context.Context, n record.PendingNotice, target string, s record.NoticeSettlement) {
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
