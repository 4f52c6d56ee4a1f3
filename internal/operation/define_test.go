package operation

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
		"arguments that are not a struct": {func() { made[[]string](Operation{}) }, "no struct"},
		"with schemas of their own":       {func() { made[map[string]any](Operation{Schemas: Schemas{Input: object}}) }, ""},
		"a route without a method": {
			func() { made[question](Operation{Needs: Needs{For: People}, Route: Route{Path: "/x"}}) }, "no method",
		},
		"one name twice": {func() { Operation{Types: Types{Input: twice}}.mustValidate() }, `"a" twice`},
		"a tool that only people may ask for": {func() {
			made[question](Operation{Needs: Needs{For: People},
				Tool: Tool{Title: "Merge"}})
		}, "has a tool"},
		"a path with what is not an argument": {
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
	Define(nil, "", o, CallSpec[In]{}, func(context.Context, Call, In) (reply, error) { return reply{}, nil })
}

// act is something that only people do, and that a dry run does not refuse.
func act(w *world, did *int) Operation {
	o := Operation{Name: "cut", Action: "connection.cut", Effect: Write, Needs: Needs{For: People, Dry: DryDone}}
	return Define(func() *Kernel { return w.Kernel }, "", o, CallSpec[question]{},
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
					CallSpec[question]{
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
				judged := record.PolicyUnreadable
				if c.authority.Problem == "" {
					judged = c.authority.Policy.Hash()
				}
				must.Equal(t, w.rows[0].Policy, judged)
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
				Operation{Name: "act", Effect: Write, Needs: Needs{For: People, Dry: DryDone}}, CallSpec[question]{},
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

func TestEachToolHasItsPlaceInREST(t *testing.T) {
	for effect, want := range map[Effect]struct {
		scope access.Scope
		tier  gitprovider.Tier
	}{Read: {access.Read, 1}, Write: {access.Operate, 3}, Exec: {access.Operate, 2}} {
		o := tool(effect)
		o.Name = "agent_list"
		made := Define(nil, "set", o, CallSpec[question]{Timeout: time.Minute},
			func(context.Context, Call, question) (reply, error) { return reply{}, nil })
		r := made.Route
		if r.Method != "POST" || r.Path != "/tools/agent_list" || r.ID != "callAgentList" || made.Needs.Scope != want.scope ||
			r.MaxBody != MaxArguments || r.Takes < time.Minute {
			t.Errorf("%s: %+v", effect, r)
		}
		if made.Needs.Tier != want.tier {
			t.Errorf("%s: tier %d", effect, made.Needs.Tier)
		}
	}
}

func TestThePolicyRaisesTheTierOfAToolAndNeverLowersIt(t *testing.T) {
	w := newWorld(t)
	w.Authority.Tier = 2
	for least, refused := range map[gitprovider.Tier]bool{1: false, 2: false, 3: true} {
		w.Authority.Least = func(string) gitprovider.Tier { return least }
		w.ran, w.rows = nil, nil
		_, f, _ := w.ask(t, tool(Exec), CallSpec[question]{}, `{"name":"a"}`)
		if (f != nil) != refused || len(w.ran) == 1 == refused || len(w.rows) != 1 {
			t.Errorf("at least %d: %v, ran %d, rows %d", least, f, len(w.ran), len(w.rows))
		}
	}
	w.Authority.Tier, w.Authority.Least = 1, func(string) gitprovider.Tier { return 1 }
	if _, f, _ := w.ask(t, tool(Exec), CallSpec[question]{}, `{"name":"a"}`); f == nil || f.Reason != ReasonTier {
		t.Errorf("lowered: %v", f)
	}
}

func TestAToolDecodesItsArgumentsItself(t *testing.T) {
	w := newWorld(t)
	way := CallSpec[question]{Decode: func(arguments []byte) (question, []fault.Violation) {
		if string(arguments) != `{"any":1}` {
			return question{}, []fault.Violation{{Code: fault.InvalidArgument, Path: "any", Message: "is wrong"}}
		}
		return question{Name: "decoded"}, nil
	}}
	if answer, f, _ := w.ask(t, tool(Read), way, `{"any":1}`); f != nil || answer.Text != "hello decoded" {
		t.Errorf("%v, %v", answer, f)
	}
	if _, f, _ := w.ask(t, tool(Read), way, `{}`); f == nil || f.Reason != ReasonArguments ||
		f.General.Violations[0].Path != "any" || len(w.ran) != 1 {
		t.Errorf("%v", f)
	}
}

func TestACallAsksForADryRunItself(t *testing.T) {
	w := newWorld(t)
	way := CallSpec[question]{DryRun: func(q question) bool { return q.Name == "try" },
		Roots: func(question) []string { return []string{t.TempDir()} }}
	w.handle = func(_ context.Context, call Call, q question) (reply, error) {
		if call.DryRun != (q.Name == "try") || len(w.Locks.held) > 0 && call.DryRun {
			t.Errorf("%s: dry run %t, %d locks", q.Name, call.DryRun, len(w.Locks.held))
		}
		return reply{}, nil
	}
	if _, f, _ := w.ask(t, tool(Write), way, `{"name":"try"}`); f != nil || w.rows[0].Outcome != record.OutcomeDryRun {
		t.Errorf("%v, %v", f, w.rows)
	}
	if _, f, _ := w.ask(t, tool(Write), way, `{"name":"do"}`); f != nil || w.rows[1].Outcome != record.OutcomeDone {
		t.Errorf("%v, %v", f, w.rows)
	}
}

func TestSeveralFoldersAreLockedInOneOrder(t *testing.T) {
	w := newWorld(t)
	a, b := t.TempDir(), t.TempDir()
	both := [][]string{{a, b}, {b, a, a}}
	var inside sync.Mutex
	w.handle = func(context.Context, Call, question) (reply, error) {
		if !inside.TryLock() {
			t.Error("two calls write the same folders")
			return reply{}, nil
		}
		time.Sleep(time.Millisecond)
		inside.Unlock()
		return reply{}, nil
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			release, refused := w.Locks.takeAll(t.Context(), both[i%2], func(string) {})
			if refused != nil {
				t.Error(refused)
				return
			}
			defer release()
			if _, err := w.handle(t.Context(), Call{}, question{}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	way := CallSpec[question]{Roots: func(question) []string { return []string{b, a} }}
	w.handle = nil
	if _, f, _ := w.ask(t, tool(Write), way, `{"name":"a"}`); f != nil || !slices.Equal(w.rows[0].Paths, []string{b, a}) {
		t.Errorf("%v, %v", f, w.rows)
	}
}

func TestAFolderThatIsNotThereYetHasOneLockUnderAllItsNames(t *testing.T) {
	real, links := t.TempDir(), t.TempDir()
	link := filepath.Join(links, "link")
	must.Do(t, os.Symlink(real, link))
	if a, b := files.Resolve(filepath.Join(real, "new", "deep")), files.Resolve(filepath.Join(link, "new",
		"deep")); a != b {
		t.Errorf("%s, %s", a, b)
	}
}

func TestTheClientHearsWhatIsWaitedForAndThatACallStillRuns(t *testing.T) {
	w := newWorld(t)
	w.Locks.wait = time.Second
	folder := t.TempDir()
	heard := make(chan string, 100)
	release, refused := w.Locks.acquire(t.Context(), folder)
	if refused != nil {
		t.Fatal(refused)
	}
	_, refused = w.Locks.takeAll(t.Context(), []string{folder}, func(phase string) { heard <- phase })
	if refused == nil || !strings.Contains(<-heard, "another call") {
		t.Errorf("%v", refused)
	}
	release()
	told := &teller{notify: func(phase string) {
		select {
		case heard <- phase:
		default: // this test was held up for long
		}
	}}
	stop := told.keepTelling(time.Millisecond)
	if got := <-heard; !strings.HasPrefix(got, "still running after 1ms") {
		t.Error(got)
	}
	stop()
	told.stop()
	for len(heard) > 0 {
		<-heard
	}
	told.setPhase("too late")
	if len(heard) > 0 {
		t.Error("it was told after the end")
	}
}

func TestAToolHasItsOwnCap(t *testing.T) {
	w := newWorld(t)
	w.handle = func(context.Context, Call, question) (reply, error) {
		return reply{Text: strings.Repeat("x", 600<<10)}, nil
	}
	for most, cut := range map[int]bool{0: true, 1 << 20: false, 100 << 10: true} {
		answer, f, _ := w.ask(t, tool(Read), CallSpec[question]{MaxAnswer: most}, `{"name":"a"}`)
		size := sizeOf(reflect.ValueOf(answer))
		if f != nil || (size < 600<<10) != cut || most > 0 && size > most {
			t.Errorf("cap %d: %d bytes, %v", most, size, f)
		}
	}
}

func TestTheAuditHasWhatAToolNotes(t *testing.T) {
	w := newWorld(t)
	w.handle = func(_ context.Context, call Call, q question) (reply, error) {
		call.Note(Note{Message: "printed " + token, Digest: "d1", Paths: []string{"/p/" + token}})
		if q.Name == "fail" {
			return reply{}, fault.New(fault.Conflict, "failed")
		}
		return reply{}, nil
	}
	for name, message := range map[string]string{"do": "printed [redacted]", "fail": "failed\nprinted [redacted]"} {
		w.rows = nil
		w.ask(t, tool(Exec), CallSpec[question]{}, `{"name":"`+name+`"}`)
		text, err := json.Marshal(w.rows)
		if err != nil || w.rows[0].Message != message || w.rows[0].Digest != "d1" || strings.Contains(string(text), token) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestArgumentsOfAPromptAreChecked(t *testing.T) {
	p := Prompt{Name: "ask", Arguments: []PromptArgument{{Name: "what", Description: "the question", Required: true},
		{Name: "more"}}}
	for name, c := range map[string]struct {
		arguments map[string]string
		want      []string // of the error; none: there is none
	}{
		"all":                 {map[string]string{"what": "a", "more": "b"}, nil},
		"what is required":    {map[string]string{"what": "a"}, nil},
		"nothing":             {nil, []string{"`what` is missing: the question"}},
		"blank":               {map[string]string{"what": " \n"}, []string{"`what` is missing"}},
		"unknown":             {map[string]string{"what": "a", "other": "b"}, []string{"ask takes only what, more"}},
		"missing and unknown": {map[string]string{"other": "b"}, []string{"`what` is missing", "ask takes only what, more"}},
		"too long": {map[string]string{"what": strings.Repeat("a", maxPromptArgument+1)},
			[]string{"at most 16384 bytes"}},
		"no text": {map[string]string{"what": "a\xff"}, []string{"must be text"}},
		"a zero":  {map[string]string{"what": "a", "more": "\x00"}, []string{"`more` must be text"}},
	} {
		err := p.Check(c.arguments)
		if (err == nil) != (c.want == nil) || err != nil && fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var said string
		if err != nil {
			for _, v := range fault.From(err).Violations {
				said += v.Message + "\n"
			}
		}
		must.Contain(t, said, c.want...)
	}
}
