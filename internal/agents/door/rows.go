package door

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ActionConnect is the audit's name for a refused connection, or a further one at the same time.
const ActionConnect = "connect"

// rowTime bounds the time for a row.
const rowTime = 10 * time.Second

// rows records connections of one door, no more than Limits.Rows in an hour.
type rows struct {
	host *Host

	mu      sync.Mutex
	since   time.Time
	written int
	left    int // that were left out
}

func newRows(h *Host) *rows { return &rows{host: h, since: h.options.Now()} }

// refused records a refused connection.
func (r *rows) refused(ctx context.Context, rights Rights, peer fmt.Stringer, why *fault.Error) {
	r.add(ctx, rights, record.Attempt{
		Outcome: record.OutcomeRefused, Code: why.Code,
		Message: fmt.Sprintf("a connection of %s was refused: %s", peer, why.Message),
	})
}

// further records a connection that is not the only one of its session.
func (r *rows) further(ctx context.Context, rights Rights, peer Peer) {
	r.add(ctx, rights, record.Attempt{Outcome: record.OutcomeDone,
		Message: fmt.Sprintf("%s is connected beside another process of the session", peer)})
}

func (r *rows) add(ctx context.Context, rights Rights, row record.Attempt) {
	left, ok := r.room()
	if !ok {
		return
	}
	if left > 0 {
		row.Message += fmt.Sprintf(" (%d more were not recorded)", left)
	}
	o := r.host.options
	row.Time, row.RequestID = o.Now(), o.NewID()
	row.Actor = record.Actor{Door: record.DoorMCP, System: record.SystemConnector}
	if rights.Session != "" {
		row.Actor.Session = &record.ActorSession{ID: rights.Session}
	}
	row.Tier, row.Action, row.Session = rights.Tier, ActionConnect, rights.Session
	o.Log.Warn("an agent's connection", "session", rights.Session, "outcome", row.Outcome, "message", row.Message)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rowTime)
	defer cancel()
	if err := o.Audit.Record(ctx, row, nil); err != nil {
		o.Log.Error("an agent's connection could not be recorded", "session", rights.Session, "error",
			fault.From(err).Message)
	}
}

// room reserves a row. left is the number of rows dropped since the last one that was reserved.
func (r *rows) room() (left int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.host.options.Now(); now.Sub(r.since) >= time.Hour {
		r.since, r.written = now, 0
	}
	if r.written >= r.host.options.Limits.Rows {
		r.left++
		return 0, false
	}
	r.written++
	left, r.left = r.left, 0
	return left, true
}
