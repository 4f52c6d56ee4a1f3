//go:build unix

package door_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// clients hands out each Client that is served.
func clients() (serve func(context.Context, door.Rights, door.Client) error, served chan door.Client) {
	served = make(chan door.Client, 10)
	return func(ctx context.Context, r door.Rights, c door.Client) error {
		served <- c
		return echo(ctx, r, c)
	}, served
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("got %v, want %q", err, code)
	}
}

// A call that begins before the Host has seen that its connection is cut off must not write.
func TestWhoWasCutOffInTheRecordsIsNotAdmittedAnyMoreAtOnce(t *testing.T) {
	r := &records{open: map[string]record.Connection{}, cut: map[string]bool{}}
	serve, served := clients()
	w := open(t, settings{records: r, serve: serve, limits: door.Limits{Look: time.Hour}})
	w.enter(connect.Lower{})
	w.enter(connect.Lower{})
	first, second := <-served, <-served
	r.await(t, "both", func() bool { return len(r.open) == 2 })
	wantCode(t, first.Admitted(t.Context()), "")
	r.mu.Lock()
	r.broken = 1
	r.mu.Unlock()
	wantCode(t, first.Admitted(t.Context()), fault.Internal) // nobody knows
	r.mu.Lock()
	for id := range r.open {
		r.cut[id] = true
		break // with it ends the whole session
	}
	r.mu.Unlock()
	wantCode(t, first.Admitted(t.Context()), fault.Unauthenticated)
	wantCode(t, second.Admitted(t.Context()), fault.Unauthenticated)
}

func TestWhoseConnectionIsOverIsNotAdmittedAnyMore(t *testing.T) {
	serve, served := clients()
	w := open(t, settings{serve: serve})
	w.enter(connect.Lower{})
	c := <-served
	wantCode(t, c.Admitted(t.Context()), "")
	w.host.Cut(w.host.Connections()[0].ID)
	wantCode(t, c.Admitted(t.Context()), fault.Unauthenticated)
}

func TestTheSessionIsAskedWhetherItMayGoOn(t *testing.T) {
	serve, served := clients()
	var over atomic.Bool
	w := open(t, settings{serve: serve, still: func(context.Context) error {
		if over.Load() {
			return fault.New(fault.Unauthenticated, "it is to end")
		}
		return nil
	}})
	w.enter(connect.Lower{})
	c := <-served
	wantCode(t, c.Admitted(t.Context()), "")
	over.Store(true)
	wantCode(t, c.Admitted(t.Context()), fault.Unauthenticated)
}
