package door

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// Budget is the remaining allowance of messages and bytes of a session, or of a token's holder. Refused messages are
// recorded too, so this bounds what an agent can write to the disk. It refills at a rate of its full size per hour.
type Budget struct {
	limits Limits
	now    func() time.Time

	mu       sync.Mutex
	messages float64
	bytes    float64
	at       time.Time // when the two were right
}

// NewBudget makes a full one.
func (h *Host) NewBudget() *Budget {
	l := h.options.Limits
	return &Budget{limits: l, now: h.options.Now, messages: float64(l.Messages), bytes: float64(l.Bytes),
		at: h.options.Now()}
}

// spend takes what was read, and returns how long to wait before more is read.
func (b *Budget) spend(size, messages int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	b.messages -= float64(messages)
	b.bytes -= float64(size)
	owed := max(-b.messages/float64(b.limits.Messages), -b.bytes/float64(b.limits.Bytes), 0)
	return time.Duration(owed * float64(time.Hour))
}

// Take takes a message of a size, in bytes, if there is room for it, and returns how long it is until there is; 0 if it
// was taken.
func (b *Budget) Take(size int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	lacks := max((1-b.messages)/float64(b.limits.Messages),
		(min(float64(size), float64(b.limits.Bytes))-b.bytes)/float64(b.limits.Bytes), 0)
	if lacks > 0 {
		return max(time.Duration(lacks*float64(time.Hour)), 1)
	}
	b.messages--
	b.bytes -= float64(size)
	return 0
}

// refill adds what the time has brought. The caller holds mu.
func (b *Budget) refill() {
	now := b.now()
	hours := max(now.Sub(b.at).Hours(), 0)
	b.at = now
	b.messages = min(b.messages+hours*float64(b.limits.Messages), float64(b.limits.Messages))
	b.bytes = min(b.bytes+hours*float64(b.limits.Bytes), float64(b.limits.Bytes))
}

// metered reads no faster than the budget allows.
type metered struct {
	in     io.Reader
	budget *Budget
	gone   <-chan struct{}
}

// Read implements io.Reader. It ends when the connection is over.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	if pause := m.budget.spend(n, bytes.Count(p[:n], []byte{'\n'})); pause > 0 && err == nil {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-m.gone:
			return n, io.EOF
		}
	}
	return n, err
}

// SetReadDeadline lets a Read that waits be ended.
func (m *metered) SetReadDeadline(at time.Time) error {
	if d, ok := m.in.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(at)
	}
	return nil
}
