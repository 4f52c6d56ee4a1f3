//go:build unix

package door_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/records/record"
)

// records keeps what a Host records.
type records struct {
	mu     sync.Mutex
	open   map[string]record.Connection
	cut    map[string]bool
	closed []string
	broken int // how many more calls fail
	opened int
}

func (r *records) OpenConnection(_ context.Context, c record.Connection) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken--; r.broken >= 0 {
		return errors.New("the database is away")
	}
	r.opened++
	r.open[c.ID] = c
	return nil
}

func (r *records) HeedConnection(_ context.Context, id string, calls int) (known, cut bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken--; r.broken >= 0 {
		return false, false, errors.New("the database is away")
	}
	c, known := r.open[id]
	if known {
		c.Calls = calls
		r.open[id] = c
	}
	return known, r.cut[id], nil
}

func (r *records) IsCut(_ context.Context, id, session string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken--; r.broken >= 0 {
		return false, errors.New("the database is away")
	}
	for other, c := range r.open {
		if r.cut[other] && (other == id || session != "" && c.Session == session) {
			return true, nil
		}
	}
	return false, nil
}

func (r *records) CloseConnection(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, id)
	r.closed = append(r.closed, id)
	return nil
}

// await waits until something is recorded.
func (r *records) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r.mu.Lock()
		ok := is()
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not seen: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *records) one(is func(record.Connection) bool) func() bool {
	return func() bool {
		for _, c := range r.open {
			if is(c) {
				return true
			}
		}
		return false
	}
}

func TestAConnectionIsRecordedWithItsCallsUntilItIsOver(t *testing.T) {
	r := &records{open: map[string]record.Connection{}, broken: 3}
	calls := make(chan func(), 1)
	w := open(t, settings{records: r, limits: door.Limits{Look: time.Millisecond},
		serve: func(ctx context.Context, rights door.Rights, c door.Client) error {
			calls <- c.Calling()
			return echo(ctx, rights, c)
		}})
	s := w.enter(connect.Lower{Tier: 1})
	ended := <-calls
	r.await(t, "the connection with its call",
		r.one(func(c record.Connection) bool { return c.Session == session && c.Tier == 1 && c.Calls == 1 }))
	ended()
	ended() // once counts
	r.await(t, "the end of the call", r.one(func(c record.Connection) bool { return c.Calls == 0 }))
	r.mu.Lock()
	clear(r.open) // it was taken for one of a process that has ended
	r.mu.Unlock()
	r.await(t, "it is recorded again", r.one(func(c record.Connection) bool { return c.Session == session }))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.await(t, "the end", func() bool { return len(r.open) == 0 && len(r.closed) == 1 })
	if r.opened != 2 {
		t.Errorf("recorded %d times", r.opened)
	}
}

func TestWhatIsCutOffInTheRecordsEndsWithTheWholeSession(t *testing.T) {
	r := &records{open: map[string]record.Connection{}, cut: map[string]bool{}}
	w := open(t, settings{records: r, limits: door.Limits{Look: time.Millisecond}})
	first, second := w.enter(connect.Lower{}), w.enter(connect.Lower{})
	first.ask(t, "one")
	second.ask(t, "two")
	r.await(t, "both", func() bool { return len(r.open) == 2 })
	r.mu.Lock()
	for id := range r.open {
		r.cut[id] = true
		break // one of them is enough
	}
	r.mu.Unlock()
	for _, s := range []speaker{first, second} {
		if line, err := s.lines.ReadString('\n'); err == nil {
			t.Errorf("it goes on: %q", line)
		}
	}
	_, err := w.dial(connect.Hello{Ticket: w.ticket()})
	refusal(t, err)
	r.await(t, "the end of both", func() bool {
		return len(r.open) == 0 && len(slices.Compact(slices.Sorted(slices.Values(r.closed)))) == 2
	})
}
