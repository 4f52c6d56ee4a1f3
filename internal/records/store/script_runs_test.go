package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// scriptRun is a run of a year ago.
func scriptRun(id string) record.ScriptRun {
	at := noon().AddDate(-1, 0, 0)
	return record.ScriptRun{
		ID: id, Script: "check_disk", Path: "/ops/scripts/Agent/check-disk.sh", Hash: "aa", Arguments: []string{"mount"},
		By: record.ScriptCaller{
			Actor:   record.Actor{Door: record.DoorMCP, Client: "nul \x00"},
			Tier:    2,
			Session: "s",
		}, StartedAt: at,
		EndsBy: at.Add(time.Minute), State: record.ScriptRunning,
	}
}

func interrupted(r record.ScriptRun) record.Attempt {
	return record.Attempt{RequestID: r.ID, Action: r.Script, Outcome: record.OutcomeFailed, Message: string(r.State)}
}

func TestARunOfAScriptIsKeptAsItWasSaved(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	runs := s.ScriptRuns()
	run := scriptRun("run-1")
	wantEqual(t, runs.BeginScriptRun(ctx, run), nil)
	wantEqual(t, must.Get(runs.ScriptRun(ctx, "run-1"))(t), run)
	run.State = record.ScriptEnded
	run.Ending = record.ScriptEnding{ExitCode: 3, Duration: time.Second,
		Stdout: strings.Repeat("é", record.MaxScriptOutput), Stderr: "<&\u2028", Truncated: true, TimedOut: true}
	wantEqual(t, runs.EndScriptRun(ctx, run), nil)
	got := must.Get(runs.ScriptRun(ctx, "run-1"))(t)
	if len(got.Ending.Stdout) > record.MaxScriptOutput+200 || !strings.HasPrefix(got.Ending.Stdout, "éé") {
		t.Errorf("%d bytes are kept", len(got.Ending.Stdout))
	}
	got.Ending.Stdout, run.Ending.Stdout = "", ""
	wantEqual(t, got, run)
	if _, err := runs.ScriptRun(ctx, "gone"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if err := runs.BeginScriptRun(ctx, run); err == nil {
		t.Error("the same id was taken twice")
	}
}

func TestRunsOfScriptsArePaged(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	for i := range 5 {
		run := scriptRun(fmt.Sprintf("run-%d", i))
		run.Script = []string{"a", "b"}[i%2]
		wantEqual(t, s.ScriptRuns().BeginScriptRun(ctx, run), nil)
	}
	ids := func(q record.ScriptRunQuery) (out []string) {
		for _, r := range must.Get(s.ScriptRuns().ScriptRuns(ctx, q))(t) {
			out = append(out, r.ID)
		}
		return out
	}
	wantEqual(t, ids(record.ScriptRunQuery{Limit: 2}), []string{"run-4", "run-3"})
	wantEqual(t, ids(record.ScriptRunQuery{Before: "run-3"}), []string{"run-2", "run-1", "run-0"})
	wantEqual(t, ids(record.ScriptRunQuery{Script: "b"}), []string{"run-3", "run-1"})
	wantEqual(t, len(ids(record.ScriptRunQuery{Script: "c"})), 0)
}

func TestRunsThatTheAuditLacksGetTheirRow(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	runs := s.ScriptRuns()
	killed, ended, known, young := scriptRun("killed"), scriptRun("ended"), scriptRun("known"), scriptRun("young")
	young.EndsBy = time.Now().Add(time.Hour)
	for _, r := range []record.ScriptRun{killed, ended, known, young} {
		wantEqual(t, runs.BeginScriptRun(ctx, r), nil)
	}
	for _, r := range []record.ScriptRun{ended, known} {
		r.State = record.ScriptEnded
		wantEqual(t, runs.EndScriptRun(ctx, r), nil)
	}
	wantEqual(t, s.Ledger.Record(ctx, attempt("known"), nil), nil)
	for range 2 { // the second time there is nothing to do
		wantEqual(t, runs.SettleScriptRuns(ctx, interrupted), nil)
		rows := must.Get(s.Audit.Page(ctx, record.AuditQuery{Ascending: true}))(t)
		wantEqual(t, len(rows), 3)
		wantEqual(t, []string{rows[1].RequestID, rows[1].Message, rows[2].RequestID, rows[2].Message},
			[]string{"ended", "ended", "killed", "interrupted"})
	}
	for id, want := range map[string]record.ScriptRunState{
		"killed": record.ScriptInterrupted, "ended": record.ScriptEnded, "known": record.ScriptEnded,
		"young": record.ScriptRunning,
	} {
		wantEqual(t, must.Get(runs.ScriptRun(ctx, id))(t).State, want)
	}
	wantEqual(t, verify(t, s, "").OK(), true)
}

// A process that is killed cannot end its runs: the next look sees it at once, while those of a live process go on.
func TestARunWhoseProcessIsGoneIsInterruptedAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	place := t.TempDir()
	gone := must.Get(Open(ctx, place, Options{}))(t)
	lives := must.Get(Open(ctx, place, Options{}))(t)
	t.Cleanup(func() { _ = lives.Close() })
	killed, ended, goesOn := scriptRun("killed"), scriptRun("ended"), scriptRun("goes-on")
	for _, r := range []*record.ScriptRun{&killed, &ended, &goesOn} {
		r.EndsBy = time.Now().Add(time.Hour)
	}
	wantEqual(t, gone.ScriptRuns().BeginScriptRun(ctx, killed), nil)
	wantEqual(t, gone.ScriptRuns().BeginScriptRun(ctx, ended), nil)
	wantEqual(t, lives.ScriptRuns().BeginScriptRun(ctx, goesOn), nil)
	ended.State = record.ScriptEnded
	wantEqual(t, gone.ScriptRuns().EndScriptRun(ctx, ended), nil)
	looks := func(want map[string]record.ScriptRunState) {
		t.Helper()
		wantEqual(t, lives.ScriptRuns().SettleScriptRuns(ctx, interrupted), nil)
		for id, state := range want {
			wantEqual(t, must.Get(lives.ScriptRuns().ScriptRun(ctx, id))(t).State, state)
		}
	}
	looks(map[string]record.ScriptRunState{"killed": record.ScriptRunning, "goes-on": record.ScriptRunning})
	wantEqual(t, gone.Close(), nil) // releases what the kernel releases when a process is killed
	looks(map[string]record.ScriptRunState{"killed": record.ScriptInterrupted, "ended": record.ScriptEnded,
		"goes-on": record.ScriptRunning})
	// The process that ended a run writes its row itself.
	wantEqual(t, len(must.Get(lives.Audit.Page(ctx, record.AuditQuery{}))(t)), 1)
	goesOn.State = record.ScriptEnded
	wantEqual(t, lives.ScriptRuns().EndScriptRun(ctx, goesOn), nil)
	looks(map[string]record.ScriptRunState{"goes-on": record.ScriptEnded})
}
