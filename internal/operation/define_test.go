package operation

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestWhatADoorCouldNotServeIsRefusedWhenItIsMade(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	text := reflect.TypeFor[string]()
	twice := reflect.StructOf([]reflect.StructField{{Name: "A", Type: text, Tag: `json:"a"`}, {Name: "B", Type: text, Tag: `json:"a"`}})
	for name, c := range map[string]struct {
		make func()
		want string
	}{
		"arguments that are no struct":            {func() { NewRaw[map[string]any](Operation{}, answer) }, "no struct"},
		"arguments that are no struct, of a tool": {func() { Define(nil, "set", Operation{}, Way[[]string]{}, reply0[[]string]) }, "no struct"},
		"with schemas of their own":               {func() { NewRaw[map[string]any](Operation{Schemas: Schemas{Input: object}}, answer) }, ""},
		"a route without a method":                {func() { NewRaw[question](Operation{Route: Route{Path: "/x"}}, answer) }, "no method"},
		"one name twice":                          {func() { Operation{Types: Types{Input: twice}}.check() }, `"a" twice`},
		"a tool that only people may ask for":     {func() { NewRaw[question](Operation{Needs: Needs{For: People}, Tool: Tool{Title: "Merge"}}, answer) }, "has a tool"},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			func() {
				defer func() { said, _ = recover().(string) }()
				c.make()
			}()
			if (said == "") != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
}

func answer(context.Context, Call) (reply, error) { return reply{}, nil }

func reply0[In any](context.Context, Call, In) (reply, error) { return reply{}, nil }

// act is something that only people do, and that a dry run does not refuse.
func act(w *world, did *int) Operation {
	o := Operation{Name: "cut", Action: "connection.cut", Effect: Write, Needs: Needs{For: People, Dry: DryDone}}
	return Define(func() *Kernel { return w.Kernel }, "", o, Way[question]{}, func(ctx context.Context, call Call, in question) (reply, error) {
		*did++
		if call.DryRun { // it is done in a dry run, too
			*did += 10
		}
		if in.Name == "panic" {
			panic("private words")
		}
		return reply{Text: in.Name}, w.Record(ctx, call.Done("cut "+in.Name+" "+token), nil)
	})
}

func TestAnActOfAPersonGoesTheSameWay(t *testing.T) {
	for name, c := range map[string]struct {
		door      record.Door
		arguments string
		code      fault.Code
		outcome   record.Outcome
		message   string
		did       int
	}{
		"is done":                    {record.DoorREST, `{"name":"ann"}`, "", record.OutcomeDone, "cut ann [redacted]", 1},
		"arguments that are wrong":   {record.DoorREST, `{"nam":"ann"}`, fault.InvalidArgument, record.OutcomeRefused, "", 0},
		"an agent, whatever it says": {record.DoorMCP, `{"name":"ann"}`, fault.Forbidden, record.OutcomeRefused, "cut is for people; no agent may do it", 0},
		"a panic":                    {record.DoorWeb, `{"name":"panic"}`, fault.Internal, record.OutcomeFailed, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, did := newWorld(t), 0
			w.Authority.Tier, w.Authority.DryRun, w.Authority.ReadOnly = 1, true, "closed"
			_, err := act(w, &did).Handle(t.Context(), Call{Caller: Caller{Door: c.door, Name: "ann"}, Arguments: []byte(c.arguments), ID: "given"})
			if fault.CodeOf(err) != c.code || did != c.did || len(w.rows) != 1 || err != nil && AttemptIDOf(err) != "given" {
				t.Fatalf("%v, done %d times, rows %+v", err, did, w.rows)
			}
			row := w.rows[0]
			if row.Action != "connection.cut" || row.Outcome != c.outcome || row.Code != c.code || row.RequestID != "given" || row.Session != "" || row.Tier != 0 {
				t.Errorf("row %+v", row)
			}
			if c.message != "" && row.Message != c.message || strings.Contains(row.Message, "private") {
				t.Errorf("message %q", row.Message)
			}
		})
	}
}
