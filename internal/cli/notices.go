package cli

import (
	"context"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/notify"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web"
)

// notifications reads who wants to be told. What cannot be understood is a warning, never a reason not to start.
func (p *parts) notifications() {
	targets, problems := notify.ParseTargets(notify.Settings{
		AppriseURLs: p.cfg.Notifications.AppriseURLs, WebhookURL: p.cfg.Notifications.WebhookURL, WebhookSecret: p.cfg.Notifications.WebhookSecret,
		AllowPlainHTTP: p.cfg.Notifications.AllowPlainHTTP,
	})
	p.targets = targets
	for _, problem := range problems {
		p.cfg.Warnings = append(p.cfg.Warnings, problem)
		p.log.Warn(problem)
	}
}

// notices makes the notices of an event, one for each target.
func (p *parts) notices(event record.Event, a record.Attempt) []record.Notice {
	notices, err := notify.Notices(notify.FromAttempt(event, a), p.targets.Names()...)
	if err != nil {
		p.log.Error("no notice was made", "event", event, "request_id", a.RequestID, "error", err)
	}
	return notices
}

// deliverBound is how long a command waits for its notices to go out. What does not is delivered by a later process.
const deliverBound = 10 * time.Second

// deliver sends what waits, when a command is about to end.
func (p *parts) deliver(ctx context.Context) {
	if len(p.targets.Names()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverBound)
	defer cancel()
	if _, pending, err := p.deliverer.Deliver(ctx); err != nil || pending > 0 {
		p.log.Warn("notices wait for a later process", "pending", pending, "error", err)
	}
}

// deliverInterval is how often a server looks for notices that are due again.
const deliverInterval = time.Minute

// delivering is the flow of a server: notices go out behind its answers.
type delivering struct {
	*prflow.Service
	p     *parts
	start sync.Once
	wake  chan struct{} // capacity 1
	stop  chan struct{}
	done  sync.WaitGroup
}

func newDelivering(p *parts) *delivering {
	return &delivering{Service: p.flow, p: p, wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// Create is Service.Create. The first one starts the delivery, since before it nothing may touch the records.
func (d *delivering) Create(ctx context.Context, caller operation.Caller, raw []byte) (prflow.CreateResult, error) {
	result, err := d.Service.Create(ctx, caller, raw)
	d.begin(ctx)
	return result, err
}

// begin starts the delivery, and makes it look at once.
func (d *delivering) begin(ctx context.Context) {
	if len(d.p.targets.Names()) == 0 {
		return
	}
	d.start.Do(func() { d.done.Go(func() { d.run(context.WithoutCancel(ctx)) }) })
	select {
	case d.wake <- struct{}{}:
	default: // a pass is about to begin anyway
	}
}

// atMost is the same under a ceiling; see prflow.Service.AtMost.
func (d *delivering) atMost(ceiling gitprovider.Tier) web.Flow {
	return lowered{d.AtMost(ceiling), d}
}

// lowered is the flow for one caller of a server.
type lowered struct {
	*prflow.Service
	d *delivering
}

// Create is Service.Create.
func (l lowered) Create(ctx context.Context, caller operation.Caller, raw []byte) (prflow.CreateResult, error) {
	result, err := l.Service.Create(ctx, caller, raw)
	l.d.begin(ctx)
	return result, err
}

// Promote is Service.Promote.
func (l lowered) Promote(ctx context.Context, caller operation.Caller, id string) (prflow.CreateResult, error) {
	result, err := l.Service.Promote(ctx, caller, id)
	l.d.begin(ctx)
	return result, err
}

// run makes one pass at a time until finish is called. A pass is bounded and never broken off: an attempt that was not
// waited for would have to be made again.
func (d *delivering) run(ctx context.Context) {
	for {
		select {
		case <-d.wake:
		case <-time.After(deliverInterval):
		case <-d.stop:
			return
		}
		d.p.deliver(ctx)
	}
}

// finish lets the pass that is under way end, and makes a last one for what came behind it.
func (d *delivering) finish(ctx context.Context) {
	close(d.stop)
	d.done.Wait()
	select {
	case <-d.wake:
		d.p.deliver(ctx)
	default:
	}
}
