package admin

import (
	"context"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
)

// old is a store of one old proposal, and an audit.
type old struct {
	before  time.Time
	output  time.Time // before of what sessions said, if that was asked about by itself
	removed bool
	rows    []record.Attempt
}

func (o *old) CountPrunable(_ context.Context, before time.Time, kinds ...string) ([]record.Pruned, error) {
	if len(kinds) > 0 {
		o.output = before
		return []record.Pruned{{Kind: kinds[0], Rows: 1}}, nil
	}
	o.before = before
	return []record.Pruned{{Kind: "proposals", Rows: 1}}, nil
}

func (o *old) Prune(ctx context.Context, before time.Time, row func([]record.Pruned) record.Attempt,
	kinds ...string) ([]record.Pruned, error) {
	out, err := o.CountPrunable(ctx, before, kinds...)
	o.removed, o.rows = true, append(o.rows, row(out))
	return out, err
}

func (o *old) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	o.rows = append(o.rows, a)
	return nil
}

// acts are those on the store, at a time, with what is kept in general and of what sessions said.
func acts(t *testing.T, o *old, now time.Time, keep, output time.Duration, dry bool) operation.Operation {
	return RetentionActs{
		Kernel: operationtest.Kernel(t, operation.Authority{DryRun: dry}, o), Store: func() RetentionStore { return o },
		Keep: func() time.Duration { return keep }, KeepOutput: func() time.Duration { return output },
		Output: "session_output",
		Now:    func() time.Time { return now },
	}.Operation()
}

// What sessions said is most of the records: it goes earlier than the rest, unless that goes early, too.
func TestWhatSessionsSaidGoesFirst(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	ago := func(age time.Duration) time.Time {
		if age == 0 {
			return time.Time{}
		}
		return now.Add(-age)
	}
	for _, c := range []struct{ keep, keepOutput, before, output time.Duration }{
		{0, 30 * day, 0, 30 * day}, {90 * day, 30 * day, 90 * day, 30 * day}, {7 * day, 30 * day, 7 * day, 0},
		{90 * day, 0, 90 * day, 0},
	} {
		for _, dry := range []bool{false, true} {
			o := &old{}
			out, err := acts(t, o, now, c.keep, c.keepOutput, dry).Handle(t.Context(), operation.Call{
				Caller: operation.Caller{Actor: record.Actor{Door: record.DoorCLI}}, Arguments: []byte(`{}`)})
			answer, _ := out.(RetentionAnswer)
			if err != nil || !o.before.Equal(ago(c.before)) || !o.output.Equal(ago(c.output)) || o.removed == dry ||
				!answer.Before.Equal(ago(c.before)) || !answer.OutputBefore.Equal(ago(c.output)) || len(answer.Removed) != 1 {
				t.Errorf("%+v, dry run %t: %v, %+v, %+v", c, dry, err, o, answer)
			}
		}
	}
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
			_, err := acts(t, o, now, c.keep, 0, c.dry).Handle(t.Context(), operation.Call{
				Caller:    operation.Caller{Actor: record.Actor{Door: c.door, Client: "ann"}},
				Arguments: []byte(c.arguments)})
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
