package notify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// outbox behaves like the store's: it hands out what is due, keeps it for the length of the lease, and forgets what is
// delivered or given up.
type outbox struct {
	mu       sync.Mutex
	rows     map[int64]*row
	settled  []record.NoticeSettlement
	claims   int
	claimErr error
	settle   error
}

type row struct {
	record.PendingNotice
	due  time.Time
	done bool
}

func (o *outbox) add(t *testing.T, at time.Time, notices ...record.Notice) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rows == nil {
		o.rows = map[int64]*row{}
	}
	for _, n := range notices {
		id := int64(len(o.rows) + 1)
		pending := record.PendingNotice{ID: id, Event: n.Event, Payload: n.Payload, CreatedAt: at}
		o.rows[id] = &row{PendingNotice: pending, due: at}
	}
}

// addMessages adds n notices with different request ids for each target.
func (o *outbox) addMessages(t *testing.T, at time.Time, n int, targets ...string) {
	t.Helper()
	for i := range n {
		m := openedMessage()
		m.RequestID = string(rune('A' + i))
		o.add(t, at, must.Get(notices(m, targets...))(t)...)
	}
}

func (o *outbox) ClaimNotices(
	_ context.Context, now time.Time, lease time.Duration, limit int,
) ([]record.PendingNotice, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claims++
	if o.claimErr != nil {
		return nil, o.claimErr
	}
	var out []record.PendingNotice
	for _, r := range o.rows {
		if !r.done && !r.due.After(now) {
			out = append(out, r.PendingNotice)
		}
	}
	slices.SortFunc(out, func(a, b record.PendingNotice) int { return cmp.Compare(a.ID, b.ID) })
	out = out[:min(limit, len(out))]
	for _, n := range out {
		o.rows[n.ID].due = now.Add(lease)
		o.rows[n.ID].Attempts++
	}
	return out, nil
}

func (o *outbox) SettleNotice(ctx context.Context, id int64, s record.NoticeSettlement) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := errors.Join(o.settle, ctx.Err()); err != nil {
		return err
	}
	r := o.rows[id]
	if r == nil || r.done {
		return errors.New("settled twice")
	}
	o.settled = append(o.settled, s)
	r.done = s.Delivered || s.GiveUp
	if !r.done {
		r.due = s.RetryAt
	}
	return nil
}

// waiting is when each notice that is not done is due, as seconds after at, by id.
func (o *outbox) waiting(at time.Time) map[int64]float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[int64]float64{}
	for id, r := range o.rows {
		if !r.done {
			out[id] = r.due.Sub(at).Seconds()
		}
	}
	return out
}

// fakeSender is a Sender that answers what fail says.
type fakeSender struct {
	name string
	fail func(ctx context.Context, d Delivery) error // nil: success

	mu   sync.Mutex
	sent []string // request ids of what it took
	seen int      // attempts
}

func (f *fakeSender) Name() string { return f.name }

func (f *fakeSender) Send(ctx context.Context, d Delivery) error {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	var err error
	if fail != nil {
		err = fail(ctx, d)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if err == nil {
		f.sent = append(f.sent, d.Message.RequestID)
	}
	return err
}

func (f *fakeSender) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

func (f *fakeSender) attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}
