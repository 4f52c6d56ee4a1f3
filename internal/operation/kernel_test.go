package operation

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/files"
)

type question struct {
	Name string `json:"name"          required:"true" maxLength:"9"`
	Yes  bool   `json:"yes,omitempty"`
}

type reply struct {
	Text   string         `json:"text"`
	Items  []string       `json:"items"`
	Notes  []string       `json:"notes,omitempty"`
	Values map[string]any `json:"values,omitempty"`
	Inner  struct {
		Prompt string `json:"prompt"`
	} `json:"inner"`
	Wrapped *[]string `json:"wrapped,omitempty"`
}

const token = "sesame-open-0123"

// world is a kernel with an audit in memory.
type world struct {
	*Kernel
	rows     []record.Attempt
	auditErr error
	ran      []Call
	handle   func(ctx context.Context, call Call, in question) (reply, error)
}

func (w *world) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	if w.auditErr == nil {
		w.rows = append(w.rows, a)
	}
	return w.auditErr
}

func newWorld(t *testing.T) *world {
	w := &world{}
	w.Kernel = NewKernel(KernelOptions{
		Authority: Authority{Enabled: func(name string) bool { return name == "set" }, Tier: gitprovider.TierRemediate,
			AllowWrite: true, Session: "s1"},
		Audit: w, Locks: NewLocks(t.TempDir()),
		Redact: func(s string) string { return strings.ReplaceAll(s, token, "[redacted]") },
		Log:    slog.New(slog.DiscardHandler), Now: time.Now, NewID: func() string { return "id-1" },
	})
	return w
}

func (w *world) ask(t *testing.T, o Operation, way CallSpec[question], arguments string) (reply, *Fault, string) {
	t.Helper()
	made := Define(func() *Kernel { return w.Kernel }, "set", o, way,
		func(ctx context.Context, call Call, in question) (reply, error) {
			w.ran = append(w.ran, call)
			if w.handle != nil {
				return w.handle(ctx, call, in)
			}
			return reply{Text: "hello " + in.Name}, nil
		})
	answer, err := made.Handle(t.Context(), Call{
		Caller: Caller{
			Actor: record.Actor{Door: record.DoorMCP, Client: "tester"},
		}, Ceiling: UncappedTier, Arguments: []byte(arguments),
	})
	if err == nil {
		return answer.(reply), nil, ""
	}
	var f *Fault
	if !errors.As(err, &f) {
		t.Fatalf("%v is not a Fault", err)
	}
	return answer.(reply), f, AttemptIDOf(err)
}

func tool(effect Effect) Operation {
	return Operation{Name: "tool", Effect: effect, Needs: Needs{Tier: gitprovider.TierObserve, Dry: DryTried}}
}

func TestEachStepRefusesBeforeTheNext(t *testing.T) {
	cases := map[string]struct {
		effect    Effect
		way       CallSpec[question]
		set       func(a *Authority)
		needs     Needs // beside those of tool
		op        func(o *Operation)
		arguments string
		reason    Reason
		code      fault.Code
		recorded  bool
	}{
		"a read passes": {effect: Read,
			set: func(a *Authority) { a.Tier, a.AllowWrite, a.ReadOnly = 1, false, "no" }},
		"a toolset that is off, before all": {effect: Read,
			set: func(a *Authority) { a.Enabled = func(string) bool { return false }; a.Tier = 1 }, arguments: `[`,
			reason: ReasonDisabled, code: fault.NotFound, recorded: true},
		"a write at tier 2": {effect: Write,
			set: func(a *Authority) { a.Tier, a.AllowWrite = 2, false }, reason: ReasonTier, code: fault.TierDenied,
			recorded: true},
		"a run at tier 1": {effect: Exec, set: func(a *Authority) { a.Tier = 1 }, reason: ReasonTier,
			code: fault.TierDenied, recorded: true},
		"a run at its own tier": {effect: Exec, set: func(a *Authority) { a.Tier = 2 },
			op: func(o *Operation) { o.Needs.Tier = 3 }, reason: ReasonTier, code: fault.TierDenied, recorded: true},
		"a run at tier 2 passes": {effect: Exec,
			set: func(a *Authority) { a.Tier, a.AllowWrite = 2, false }, recorded: true},
		"a write without leave, before approval": {effect: Write, needs: Needs{Yes: true},
			set: func(a *Authority) { a.AllowWrite = false }, reason: ReasonWriting, code: fault.ReadOnly, recorded: true},
		"a write to a read-only server": {effect: Write, set: func(a *Authority) { a.ReadOnly = "closed" },
			reason: ReasonWriting, code: fault.ReadOnly, recorded: true},
		"a harmless write without leave at tier 2": {effect: Write, needs: Needs{CacheOnly: true},
			set: func(a *Authority) { a.Tier, a.AllowWrite = 2, false }, recorded: true},
		"a harmless write at tier 1": {effect: Write, needs: Needs{CacheOnly: true},
			set: func(a *Authority) { a.Tier = 1 }, reason: ReasonTier, code: fault.TierDenied, recorded: true},
		"no approval, before the arguments": {effect: Write, needs: Needs{Yes: true}, arguments: `{"yes":false,"x":1}`,
			reason: ReasonApproval, code: fault.InvalidArgument, recorded: true},
		"approval under another name": {effect: Write, needs: Needs{Yes: true},
			arguments: `{"Yes":true,"name":"a"}`, reason: ReasonApproval, code: fault.InvalidArgument, recorded: true},
		"approval": {effect: Write, needs: Needs{Yes: true},
			arguments: `{"yes":true,"name":"a"}`, recorded: true},
		"arguments of a read leave no row": {effect: Read, arguments: `{"x":1}`, reason: ReasonArguments,
			code: fault.InvalidArgument},
		"arguments of a write leave a row": {effect: Write, arguments: `{"x":1}`, reason: ReasonArguments,
			code: fault.InvalidArgument, recorded: true},
		"a dry run of what cannot be tried": {effect: Exec, set: func(a *Authority) { a.DryRun = true },
			op: func(o *Operation) { o.Needs.Dry = DryRefused }, reason: ReasonWriting, code: fault.ReadOnly, recorded: true},
		"what the arguments are together": {effect: Read,
			way: CallSpec[question]{Check: func(question) *Fault { return Invalid("name", "is odd") }}, reason: ReasonArguments,
			code: fault.InvalidArgument},
		"a write that passes is recorded as done": {effect: Write, recorded: true},
		"a write in a dry run is recorded as such": {effect: Write, set: func(a *Authority) { a.DryRun = true },
			recorded: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, o := newWorld(t), tool(c.effect)
			if c.set != nil {
				c.set(&w.Authority)
			}
			o.Needs.CacheOnly, o.Needs.Yes = c.needs.CacheOnly, c.needs.Yes
			if c.op != nil {
				c.op(&o)
			}
			if c.arguments == "" {
				c.arguments = `{"name":"ann"}`
			}
			_, f, id := w.ask(t, o, c.way, c.arguments)
			if (f == nil) != (c.reason == "") || f != nil && (f.Reason != c.reason || f.General.Code != c.code) {
				t.Fatalf("answered %v", f)
			}
			if (len(w.ran) == 1) != (c.reason == "") {
				t.Errorf("the handler ran %d times", len(w.ran))
			}
			if (len(w.rows) == 1) != c.recorded || f != nil && (id == "id-1") != c.recorded {
				t.Fatalf("rows %v, id %q", w.rows, id)
			}
			if !c.recorded {
				return
			}
			row, want := w.rows[0], record.OutcomeDone
			switch {
			case f != nil:
				want = record.OutcomeRefused
			case w.Authority.DryRun:
				want = record.OutcomeDryRun
			}
			if row.Outcome != want || row.Action != "tool" || row.Caller != "agent (tester)" || row.Session != "s1" ||
				row.Tier != w.Authority.Tier || row.RequestID != "id-1" {
				t.Errorf("row %+v", row)
			}
		})
	}
}

func TestAllArgumentsThatAreWrongAreSaidAtOnce(t *testing.T) {
	_, f, _ := newWorld(t).ask(t, tool(Read), CallSpec[question]{}, `{"name":"much too long","yes":"no","x":1}`)
	if f == nil || len(f.General.Violations) != 3 {
		t.Errorf("%v", f)
	}
}

func TestACeilingLowersTheTier(t *testing.T) {
	w := newWorld(t)
	made := Define(func() *Kernel { return w.Kernel }, "set", tool(Write), CallSpec[question]{},
		func(context.Context, Call, question) (reply, error) {
			return reply{}, nil
		})
	_, err := made.Handle(t.Context(), Call{Ceiling: gitprovider.TierInvestigate, Arguments: []byte(`{"name":"a"}`)})
	if fault.CodeOf(err) != fault.TierDenied || w.rows[0].Tier != gitprovider.TierInvestigate {
		t.Errorf("%v, %v", err, w.rows)
	}
}

func TestTheHandlerKnowsOfADryRunAndNoLockIsTaken(t *testing.T) {
	w := newWorld(t)
	w.Authority.DryRun = true
	way := CallSpec[question]{Roots: func(question) []string { return []string{t.TempDir()} }}
	w.handle = func(context.Context, Call, question) (reply, error) {
		if len(w.Locks.held) != 0 {
			t.Error("a lock is taken")
		}
		return reply{}, nil
	}
	if _, f, _ := w.ask(t, tool(Write), way, `{"name":"a"}`); f != nil || !w.ran[0].DryRun {
		t.Errorf("%v, %v", f, w.ran)
	}
	w.Authority.DryRun, w.handle = false, nil
	if _, f, _ := w.ask(t, tool(Write), way, `{"name":"a"}`); f != nil || w.ran[1].DryRun {
		t.Errorf("%v, %v", f, w.ran)
	}
}

func TestOneFolderIsWrittenByOneCallAtATimeAlsoOfAnotherProcess(t *testing.T) {
	folder := t.TempDir()
	for _, sameProcess := range []bool{true, false} {
		w := newWorld(t)
		w.Locks.wait = 50 * time.Millisecond
		holder := w.Locks
		if !sameProcess {
			holder = NewLocks(w.Locks.dir)
		}
		release, refused := holder.acquire(t.Context(), folder)
		if refused != nil {
			t.Fatal(refused)
		}
		way := CallSpec[question]{Roots: func(question) []string { return []string{folder} }}
		if _, f, _ := w.ask(t, tool(Write), way, `{"name":"a"}`); f == nil || f.Reason != ReasonBusy ||
			f.General.Code != fault.Conflict || len(w.ran) > 0 || len(w.rows) != 1 {
			t.Errorf("%v, ran %v", f, w.ran)
		}
		other := CallSpec[question]{Roots: func(question) []string { return []string{folder + "-other"} }}
		if _, f, _ := w.ask(t, tool(Write), other, `{"name":"a"}`); f != nil {
			t.Errorf("another folder: %v", f)
		}
		release()
		if _, f, _ := w.ask(t, tool(Write), way, `{"name":"a"}`); f != nil || w.rows[2].Paths[0] != folder {
			t.Errorf("after the release: %v, %v", f, w.rows)
		}
	}
}

func TestACallThatTakesTooLongEnds(t *testing.T) {
	w := newWorld(t)
	w.handle = func(ctx context.Context, _ Call, _ question) (reply, error) {
		<-ctx.Done()
		return reply{}, ctx.Err()
	}
	_, f, _ := w.ask(t, tool(Write), CallSpec[question]{Timeout: time.Millisecond}, `{"name":"a"}`)
	if f == nil || f.Reason != ReasonTime || f.General.Code != fault.Timeout || w.rows[0].Outcome != record.OutcomeFailed {
		t.Errorf("%v, %v", f, w.rows)
	}
}

func TestAPanicAndAForeignErrorStayInside(t *testing.T) {
	for name, handle := range map[string]func(context.Context, Call, question) (reply, error){
		"panic": func(context.Context, Call, question) (reply, error) { panic("private words") },
		"error": func(context.Context, Call, question) (reply, error) { return reply{}, errors.New("private words") },
	} {
		w := newWorld(t)
		w.handle = handle
		_, f, _ := w.ask(t, tool(Write), CallSpec[question]{}, `{"name":"a"}`)
		if f == nil || f.Reason != ReasonOurs || f.General.Code != fault.Internal ||
			strings.Contains(f.Error(), "private words") || len(w.rows) != 1 {
			t.Errorf("%s: %v, %v", name, f, w.rows)
		}
	}
}

func TestOurTokensLeaveNeitherInAnswersNorInErrorsNorInRows(t *testing.T) {
	w := newWorld(t)
	shared := []string{"a", token}
	w.handle = func(context.Context, Call, question) (reply, error) {
		out := reply{Text: "x" + token, Items: shared, Values: map[string]any{token: []any{map[string]any{"k": token}}},
			Wrapped: &shared}
		out.Inner.Prompt = token
		return out, nil
	}
	answer, f, _ := w.ask(t, tool(Read), CallSpec[question]{}, `{"name":"a"}`)
	text, err := json.Marshal(answer)
	if f != nil || err != nil || strings.Contains(string(text), token) || strings.Count(string(text), "[redacted]") != 6 {
		t.Errorf("%s, %v", text, f)
	}
	if shared[1] != token {
		t.Error("what others share was changed")
	}
	w.handle = func(context.Context, Call, question) (reply, error) {
		general := fault.New(fault.Conflict, "has %s", token)
		general.Violations = []fault.Violation{{Message: token}}
		return reply{}, &Fault{Code: "C", General: general, Details: map[string]any{"d": token}, Suggestions: []string{token}}
	}
	_, f, _ = w.ask(t, tool(Write), CallSpec[question]{Roots: func(question) []string { return []string{"/" + token} }},
		`{"name":"a"}`)
	text, err = json.Marshal([]any{f, f.Error(), f.General.Violations, w.rows})
	if err != nil || strings.Contains(string(text), token) || f.Code != "C" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAnAnswerIsCappedAndSaysWhatWasLeftOut(t *testing.T) {
	many := make([]string, 9000)
	for i := range many {
		many[i] = strings.Repeat("x", 100)
	}
	w := newWorld(t)
	w.handle = func(context.Context, Call, question) (reply, error) {
		out := reply{Text: strings.Repeat("é\n", 200<<10), Items: many}
		out.Inner.Prompt = "short"
		return out, nil
	}
	answer, f, _ := w.ask(t, tool(Read), CallSpec[question]{}, `{"name":"a"}`)
	if f != nil || sizeOf(reflect.ValueOf(answer)) > maxAnswer ||
		!strings.Contains(answer.Text+strings.Join(answer.Notes, ""), "left out") ||
		len(answer.Items) == len(many) == (len(answer.Notes) > 0) || answer.Inner.Prompt != "short" {
		t.Errorf("%v: %d bytes, %d items, notes %v", f, sizeOf(reflect.ValueOf(answer)), len(answer.Items), answer.Notes)
	}
	if !strings.HasPrefix(answer.Text, "é") || strings.ContainsRune(answer.Text, '\ufffd') {
		t.Error("the text is cut within a character")
	}
	huge := map[string]any{"a": strings.Repeat("x", maxAnswer)}
	w.handle = func(context.Context, Call, question) (reply, error) { return reply{Values: huge}, nil }
	if _, f, _ := w.ask(t, tool(Read), CallSpec[question]{}, `{"name":"a"}`); f == nil || f.Reason != ReasonSize ||
		f.General.Code != fault.LimitReached {
		t.Errorf("%v", f)
	}
}

func TestAWriteThatCannotBeRecordedSaysSo(t *testing.T) {
	w := newWorld(t)
	w.auditErr = fault.New(fault.Misconfigured, "no records")
	if _, f, id := w.ask(t, tool(Write), CallSpec[question]{}, `{"name":"a"}`); f == nil ||
		f.General.Code != fault.Misconfigured || id != "" {
		t.Errorf("%v, %q", f, id)
	}
	if _, f, _ := w.ask(t, tool(Read), CallSpec[question]{}, `{"name":"a"}`); f != nil {
		t.Errorf("a read needs no record: %v", f)
	}
}

func TestToolsThatWriteAreListedOnlyWhereTheyMay(t *testing.T) {
	k := newWorld(t).Kernel
	listed := func() [3]bool {
		return [3]bool{k.Listed(defined(Read, false)), k.Listed(defined(Write, false)), k.Listed(defined(Write, true))}
	}
	for name, c := range map[string]struct {
		set  func(a *Authority)
		want [3]bool
	}{
		"all":           {func(*Authority) {}, [3]bool{true, true, true}},
		"without leave": {func(a *Authority) { a.AllowWrite = false }, [3]bool{true, false, true}},
		"tier 2":        {func(a *Authority) { a.AllowWrite, a.Tier = true, 2 }, [3]bool{true, false, true}},
		"read-only":     {func(a *Authority) { a.Tier, a.ReadOnly = 3, "closed" }, [3]bool{true, false, true}},
	} {
		k.Authority = Authority{Tier: 3, AllowWrite: true}
		c.set(&k.Authority)
		if got := listed(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestACallThatNeverCameToItsToolIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.Reject(t.Context(), Call{Ceiling: UncappedTier}, "tool", fault.New(fault.InvalidArgument, "line %s", token))
	w.Reject(t.Context(), Call{}, "", fault.New(fault.InvalidArgument, "no JSON"))
	if len(w.rows) != 2 || w.rows[0].Action != "tool" || w.rows[1].Action != "tools/call" ||
		w.rows[0].Outcome != record.OutcomeRefused || strings.Contains(w.rows[0].Message, token) {
		t.Errorf("%+v", w.rows)
	}
}

// defined is a tool as Define completes it.
func defined(effect Effect, own bool) Operation {
	o := tool(effect)
	o.Needs.CacheOnly = own
	return Define(nil, "set", o, CallSpec[question]{},
		func(context.Context, Call, question) (reply, error) { return reply{}, nil })
}

// A call has waited for its lock when it is asked for the last time whether its caller is let in.
func TestWhoIsNotLetInAnyMoreAfterWaitingDoesNothing(t *testing.T) {
	revoked := fault.New(fault.Unauthenticated, "the token was revoked")
	for name, c := range map[string]struct {
		effect Effect
		err    error
		code   fault.Code
		reason Reason
		ran    bool
	}{
		"a write":                  {Write, revoked, fault.Unauthenticated, ReasonWriting, false},
		"a run":                    {Exec, revoked, fault.Unauthenticated, ReasonWriting, false},
		"a read is asked nothing":  {Read, revoked, "", "", true},
		"nobody can be asked":      {Write, errors.New("the records are away"), fault.Internal, ReasonOurs, false},
		"who is let in still does": {Write, nil, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, folder := newWorld(t), t.TempDir()
			way := CallSpec[question]{Roots: func(question) []string { return []string{folder} }}
			o := Define(func() *Kernel { return w.Kernel }, "set", tool(c.effect), way,
				func(_ context.Context, call Call, _ question) (reply, error) {
					w.ran = append(w.ran, call)
					return reply{}, nil
				})
			caller := Caller{Actor: record.Actor{Door: record.DoorREST, Client: "ci"}, Recheck: func(context.Context) error {
				if _, refused := (&Locks{dir: w.Locks.dir, held: w.Locks.held}).acquire(t.Context(),
					files.Resolve(folder)); refused == nil {
					t.Error("asked before the lock was taken")
				}
				return c.err
			}}
			_, err := o.Handle(t.Context(), Call{Caller: caller, Ceiling: UncappedTier, Arguments: []byte(`{"name":"a"}`)})
			if fault.CodeOf(err) != c.code || (len(w.ran) == 1) != c.ran {
				t.Fatalf("got %v, ran %d times", err, len(w.ran))
			}
			if c.code == "" {
				return
			}
			if f := FaultOf(err); f.Reason != c.reason || len(w.rows) != 1 || w.rows[0].Code != c.code {
				t.Errorf("%+v, rows %+v", f, w.rows)
			}
		})
	}
}
