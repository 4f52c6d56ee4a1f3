package retention

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// old is a store of one old proposal, and an audit.
type old struct {
	before  time.Time
	removed bool
	rows    []record.Attempt
}

func (o *old) CountPrunable(_ context.Context, before time.Time) ([]record.Pruned, error) {
	o.before = before
	return []record.Pruned{{Kind: "proposals", Rows: 1}}, nil
}

func (o *old) Prune(ctx context.Context, before time.Time, row func([]record.Pruned) record.Attempt) ([]record.Pruned,
	error) {
	out, err := o.CountPrunable(ctx, before)
	o.removed, o.rows = true, append(o.rows, row(out))
	return out, err
}

func (o *old) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	o.rows = append(o.rows, a)
	return nil
}

func TestPruneRemovesWhatIsOldAndRecordsIt(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		keep      time.Duration
		door      record.Door
		dry       bool
		arguments string
		code      fault.Code
		before    time.Time
		removed   bool
		rows      int
	}{
		"as configured":         {30 * day, record.DoorWeb, false, `{}`, "", now.Add(-30 * day), true, 1},
		"another age":           {30 * day, record.DoorCLI, false, `{"older_than":"7d"}`, "", now.Add(-7 * day), true, 1},
		"in dry run":            {30 * day, record.DoorCLI, true, `{}`, "", now.Add(-30 * day), false, 0},
		"nothing is configured": {0, record.DoorCLI, false, `{}`, fault.InvalidArgument, time.Time{}, false, 0},
		"no age": {30 * day, record.DoorCLI, false, `{"older_than":"soon"}`, fault.InvalidArgument,
			time.Time{}, false, 0},
		"too young": {30 * day, record.DoorCLI, false, `{"older_than":"6d"}`, fault.InvalidArgument, time.Time{},
			false, 0},
		"an agent": {30 * day, record.DoorMCP, false, `{}`, fault.Forbidden, time.Time{}, false, 1},
		"no age, from elsewhere": {30 * day, record.DoorWeb, false, `{"older_than":"soon"}`, fault.InvalidArgument,
			time.Time{}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := &old{}
			kernel := operation.NewKernel(operation.KernelOptions{
				Authority: operation.Authority{DryRun: c.dry}, Audit: o, Redact: func(s string) string { return s },
				Log: slog.New(slog.DiscardHandler),
				Now: func() time.Time { return now }, NewID: func() string { return "id" },
			})
			prune := Acts{
				Kernel: func() *operation.Kernel { return kernel }, Store: func() Store { return o },
				Keep: func() time.Duration { return c.keep },
				Now:  func() time.Time { return now },
			}.Operation()
			_, err := prune.Handle(
				t.Context(),
				operation.Call{Caller: operation.Caller{Actor: record.Actor{Door: c.door, Client: "ann"}},
					Arguments: []byte(c.arguments)},
			)
			if fault.CodeOf(err) != c.code || !o.before.Equal(c.before) || o.removed != c.removed || len(o.rows) != c.rows {
				t.Errorf("%v, %+v", err, o)
			}
			for _, row := range o.rows {
				if row.Action != "prune" || row.Code != c.code {
					t.Errorf("%+v", row)
				}
			}
		})
	}
}
