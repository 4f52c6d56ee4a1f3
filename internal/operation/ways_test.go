package operation

import (
	"context"
	"encoding/json"
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
	"github.com/claudeops/claudeops/internal/system/files"
)

func TestEachToolHasItsPlaceInREST(t *testing.T) {
	for effect, want := range map[Effect]struct {
		scope access.Scope
		tier  gitprovider.Tier
	}{Read: {access.Read, 1}, Write: {access.Operate, 3}, Exec: {access.Operate, 2}} {
		o := tool(effect)
		o.Name = "agent_list"
		made := Define(nil, "set", o, Way[question]{Timeout: time.Minute},
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
		_, f, _ := w.ask(t, tool(Exec), Way[question]{}, `{"name":"a"}`)
		if (f != nil) != refused || len(w.ran) == 1 == refused || len(w.rows) != 1 {
			t.Errorf("at least %d: %v, ran %d, rows %d", least, f, len(w.ran), len(w.rows))
		}
	}
	w.Authority.Tier, w.Authority.Least = 1, func(string) gitprovider.Tier { return 1 }
	if _, f, _ := w.ask(t, tool(Exec), Way[question]{}, `{"name":"a"}`); f == nil || f.Reason != ReasonTier {
		t.Errorf("lowered: %v", f)
	}
}

func TestAToolDecodesItsArgumentsItself(t *testing.T) {
	w := newWorld(t)
	way := Way[question]{Decode: func(arguments []byte) (question, []fault.Violation) {
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
	way := Way[question]{DryRun: func(q question) bool { return q.Name == "try" },
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
	way := Way[question]{Roots: func(question) []string { return []string{b, a} }}
	w.handle = nil
	if _, f, _ := w.ask(t, tool(Write), way, `{"name":"a"}`); f != nil || !slices.Equal(w.rows[0].Paths, []string{b, a}) {
		t.Errorf("%v, %v", f, w.rows)
	}
}

func TestAFolderThatIsNotThereYetHasOneLockUnderAllItsNames(t *testing.T) {
	real, links := t.TempDir(), t.TempDir()
	link := filepath.Join(links, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
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
	release, refused := w.Locks.take(t.Context(), folder)
	if refused != nil {
		t.Fatal(refused)
	}
	_, refused = w.Locks.takeAll(t.Context(), []string{folder}, func(phase string) { heard <- phase })
	if refused == nil || !strings.Contains(<-heard, "another call") {
		t.Errorf("%v", refused)
	}
	release()
	told := &teller{tell: func(phase string) { heard <- phase }}
	stop := told.keepTelling(time.Millisecond)
	if got := <-heard; !strings.HasPrefix(got, "still running after 1ms") {
		t.Error(got)
	}
	stop()
	told.end()
	for len(heard) > 0 {
		<-heard
	}
	told.say("too late")
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
		answer, f, _ := w.ask(t, tool(Read), Way[question]{MaxAnswer: most}, `{"name":"a"}`)
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
		w.ask(t, tool(Exec), Way[question]{}, `{"name":"`+name+`"}`)
		text, err := json.Marshal(w.rows)
		if err != nil || w.rows[0].Message != message || w.rows[0].Digest != "d1" || strings.Contains(string(text), token) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
