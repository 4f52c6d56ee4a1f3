package operation

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

func TestWhatADoorCouldNotServeIsRefusedWhenItIsMade(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	text := reflect.TypeFor[string]()
	twice := reflect.StructOf([]reflect.StructField{{Name: "A", Type: text, Tag: `json:"a"`},
		{Name: "B", Type: text, Tag: `json:"a"`}})
	for name, c := range map[string]struct {
		make func()
		want string
	}{
		"arguments that are no struct": {func() { made[[]string](Operation{}) }, "no struct"},
		"with schemas of their own":    {func() { made[map[string]any](Operation{Schemas: Schemas{Input: object}}) }, ""},
		"a route without a method": {
			func() { made[question](Operation{Needs: Needs{For: People}, Route: Route{Path: "/x"}}) }, "no method",
		},
		"one name twice": {func() { Operation{Types: Types{Input: twice}}.check() }, `"a" twice`},
		"a tool that only people may ask for": {func() {
			made[question](Operation{Needs: Needs{For: People},
				Tool: Tool{Title: "Merge"}})
		}, "has a tool"},
		"a path with what is no argument": {
			func() { made[question](Operation{Route: Route{Method: "GET", Path: "/x/{id}/y"}}) }, "no field for {id}",
		},
		"an argument that is not in the path": {
			func() { made[placed](Operation{Route: Route{Method: "GET", Path: "/x/{other}"}}) }, "has no {id}",
		},
		"a path with its argument": {func() { made[placed](Operation{Route: Route{Method: "GET", Path: "/x/{id...}"}}) }, ""},
		"a page of a list without a view": {
			func() {
				made[question](Operation{Effect: Read, Needs: Needs{For: People}, Shown: Shown{Page: Page{Path: "/x"}}})
			}, "no view",
		},
		"a page of an act without a button": {
			func() {
				made[question](Operation{Effect: Write, Needs: Needs{For: People}, Shown: Shown{Page: Page{Path: "/x"}}})
			}, "no button",
		},
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

// placed is an input whose field is in the path of its route.
type placed struct {
	ID string `json:"id" path:"id"`
}

func made[In any](o Operation) {
	Define(nil, "", o, Way[In]{}, func(context.Context, Call, In) (reply, error) { return reply{}, nil })
}

// act is something that only people do, and that a dry run does not refuse.
func act(w *world, did *int) Operation {
	o := Operation{Name: "cut", Action: "connection.cut", Effect: Write, Needs: Needs{For: People, Dry: DryDone}}
	return Define(func() *Kernel { return w.Kernel }, "", o, Way[question]{},
		func(ctx context.Context, call Call, in question) (reply, error) {
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

// TestAnActIsRefusedByTheRulesThatItNeeds tries each setting on acts that each need one thing. What is refused does
// nothing and has a row.
func TestAnActIsRefusedByTheRulesThatItNeeds(t *testing.T) {
	listed := policy.Default()
	listed.Targets.EnvRepositories = []policy.RepoPattern{{Owner: "joe", Name: "other"}}
	acts := map[string]Needs{
		"nothing": {Dry: DryDone}, "a policy": {Dry: DryDone, Policy: true}, "leave to write": {Dry: DryDone, Writable: true},
		"no dry run": {}, "a repository on the list": {Dry: DryDone, Listed: true},
	}
	for name, c := range map[string]struct {
		authority Authority
		refuses   string // the act that it refuses
		code      fault.Code
	}{
		"nothing set":     {Authority{Rules: Rules{Policy: policy.Default()}}, "", ""},
		"a broken policy": {Authority{Rules: Rules{Problem: "broken"}}, "a policy", fault.ReadOnly},
		"read-only": {Authority{Rules: Rules{Policy: policy.Default(), Closed: true}}, "leave to write",
			fault.ReadOnly},
		"dry run": {Authority{DryRun: true, Rules: Rules{Policy: policy.Default()}}, "no dry run", fault.ReadOnly},
		"a list":  {Authority{Rules: Rules{Policy: listed}}, "a repository on the list", fault.RepoNotAllowed},
	} {
		for act, needs := range acts {
			t.Run(name+", "+act, func(t *testing.T) {
				w, did := newWorld(t), false
				w.Authority, needs.For = c.authority, People
				o := Define(func() *Kernel { return w.Kernel }, "", Operation{Name: "act", Effect: Write, Needs: needs},
					Way[question]{
						Target: func(question) Target { return Target{Provider: "local", Owner: "joe", Name: "infra", Number: 7} },
					}, func(ctx context.Context, call Call, _ question) (reply, error) {
						did = true
						return reply{}, w.Record(ctx, call.Done("done it"), nil)
					})
				_, err := o.Handle(t.Context(), Call{Caller: Caller{Actor: record.Actor{Door: record.DoorCLI, Client: "ann"}},
					Arguments: []byte(`{"name":"x"}`)})
				code, outcome := fault.Code(""), record.OutcomeDone
				if act == c.refuses {
					code, outcome = c.code, record.OutcomeRefused
				}
				if fault.CodeOf(err) != code || did != (code == "") || len(w.rows) != 1 {
					t.Fatalf("%v, done %t, rows %+v", err, did, w.rows)
				}
				if row := w.rows[0]; row.Outcome != outcome || row.Code != code || row.Action != "act" || row.Owner != "joe" ||
					row.PRNumber != 7 || row.Caller != "ann" {
					t.Errorf("row %+v", row)
				}
			})
		}
	}
}

// TestAnActThatFailsIsRecordedAsItIs and so is one whose caller is let in no more. A refusal that cannot be recorded is
// one all the same.
func TestAnActThatFailsIsRecordedAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		err, recheck, audit error
		code                fault.Code
		outcome             record.Outcome
	}{
		"a conflict": {fault.New(fault.Conflict, "closed already"), nil, nil, fault.Conflict, record.OutcomeRefused},
		"a forge that fails": {fault.New(fault.UpstreamError, "it is down"), nil, nil, fault.UpstreamError,
			record.OutcomeFailed},
		"an odd error": {errors.New("odd"), nil, nil, fault.Internal, record.OutcomeFailed},
		"let in no more": {nil, fault.New(fault.Unauthenticated, "the login has ended"), nil, fault.Unauthenticated,
			record.OutcomeRefused},
		"no record": {fault.New(fault.Conflict, "closed already"), nil, errors.New("the disk is full"),
			fault.Conflict, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, did := newWorld(t), false
			w.auditErr = c.audit
			o := Define(func() *Kernel { return w.Kernel }, "",
				Operation{Name: "act", Effect: Write, Needs: Needs{For: People, Dry: DryDone}}, Way[question]{},
				func(context.Context, Call, question) (reply, error) { did = true; return reply{}, c.err })
			caller := Caller{Actor: record.Actor{Door: record.DoorCLI, Client: "ann"}}
			if c.recheck != nil {
				caller.Recheck = func(context.Context) error { return c.recheck }
			}
			_, err := o.Handle(t.Context(), Call{Caller: caller, Arguments: []byte(`{"name":"x"}`)})
			if fault.CodeOf(err) != c.code || did != (c.recheck == nil) || (len(w.rows) == 1) != (c.outcome != "") {
				t.Fatalf("%v, done %t, rows %+v", err, did, w.rows)
			}
			if c.outcome == "" && RequestIDOf(err) != "" {
				t.Errorf("the error names the row %q", RequestIDOf(err))
			}
			if c.outcome != "" && (w.rows[0].Outcome != c.outcome || w.rows[0].Code != c.code) {
				t.Errorf("row %+v", w.rows[0])
			}
		})
	}
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
		"is done":                  {record.DoorREST, `{"name":"ann"}`, "", record.OutcomeDone, "cut ann [redacted]", 1},
		"arguments that are wrong": {record.DoorREST, `{"nam":"ann"}`, fault.InvalidArgument, record.OutcomeRefused, "", 0},
		"an agent, whatever it says": {record.DoorMCP, `{"name":"ann"}`, fault.Forbidden, record.OutcomeRefused,
			"cut is for people; no agent may do it", 0},
		"a panic": {record.DoorWeb, `{"name":"panic"}`, fault.Internal, record.OutcomeFailed, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, did := newWorld(t), 0
			w.Authority.Tier, w.Authority.DryRun, w.Authority.ReadOnly = 1, true, "closed"
			_, err := act(w, &did).Handle(t.Context(), Call{Caller: Caller{Actor: record.Actor{Door: c.door, Client: "ann"}},
				Arguments: []byte(c.arguments), ID: "given"})
			if fault.CodeOf(err) != c.code || did != c.did || len(w.rows) != 1 || err != nil && AttemptIDOf(err) != "given" {
				t.Fatalf("%v, done %d times, rows %+v", err, did, w.rows)
			}
			row := w.rows[0]
			if row.Action != "connection.cut" || row.Outcome != c.outcome || row.Code != c.code || row.RequestID != "given" ||
				row.Session != "" || row.Tier != 0 {
				t.Errorf("row %+v", row)
			}
			if c.message != "" && row.Message != c.message || strings.Contains(row.Message, "private") {
				t.Errorf("message %q", row.Message)
			}
		})
	}
}
