//go:build linux

package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// kept holds the records: it is the audit and the records of runs.
type kept struct {
	mu       sync.Mutex
	rows     []record.Attempt
	runs     map[string]record.ScriptRun
	beginErr error
}

func (k *kept) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rows = append(k.rows, a)
	return nil
}

func (k *kept) BeginScriptRun(_ context.Context, r record.ScriptRun) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.beginErr == nil {
		k.runs[r.ID] = r
	}
	return k.beginErr
}

func (k *kept) EndScriptRun(_ context.Context, r record.ScriptRun) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs[r.ID] = r
	return nil
}

func (k *kept) ScriptRun(_ context.Context, id string) (record.ScriptRun, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, has := k.runs[id]; has {
		return r, nil
	}
	return record.ScriptRun{}, fault.New(fault.NotFound, "no run %s", id)
}

func (k *kept) ScriptRuns(context.Context, record.ScriptRunQuery) (out []record.ScriptRun, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.runs {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b record.ScriptRun) int { return strings.Compare(b.ID, a.ID) })
	return out, nil
}

func (k *kept) SettleScriptRuns(context.Context, func(record.ScriptRun) record.Attempt) error {
	return nil
}

// shop is a folder of scripts behind the toolset.
type shop struct {
	*bench
	kept
	authority operation.Authority
	set       operation.Toolset
	service   *Service
}

func newShop(t *testing.T, settings string, files map[string]string) *shop {
	t.Helper()
	s := &shop{bench: newBench(t, files), kept: kept{runs: map[string]record.ScriptRun{}}}
	s.authority = operation.Authority{Enabled: func(string) bool { return true }, Tier: 2, Session: "session-1"}
	runner, parsed := s.runner(settings)
	s.service = NewService(Options{Settings: parsed, Machine: runner.machine, Records: &s.kept,
		Log: slog.New(slog.DiscardHandler), Now: time.Now})
	ids := 0
	var mu sync.Mutex
	kernel := func() *operation.Kernel {
		return operation.NewKernel(operation.KernelOptions{
			Authority: s.authority, Audit: &s.kept, Locks: operation.NewLocks(""), Redact: runner.machine.Redact,
			Log: slog.New(slog.DiscardHandler), Now: time.Now,
			NewID: func() string { mu.Lock(); defer mu.Unlock(); ids++; return fmt.Sprintf("id-%d", ids) },
		})
	}
	s.set = Toolset(kernel, func() *Service { return s.service })
	return s
}

// tool is a tool of the list, by its name.
func (s *shop) tool(name string) operation.Operation {
	s.t.Helper()
	for _, o := range slices.Concat(s.set.Found(s.t.Context()), s.set.Operations) {
		if o.Name == name {
			return o
		}
	}
	s.t.Fatalf("there is no tool %s", name)
	return operation.Operation{}
}

// answer returns a client's answer to a call.
func (s *shop) answer(o operation.Operation, call operation.Call) Result {
	s.t.Helper()
	if call.Ceiling == 0 {
		call.Ceiling = operation.UncappedTier
	}
	call.Caller.Actor = record.Actor{Door: record.DoorMCP, Client: "tester"}
	out, err := o.Handle(s.t.Context(), call)
	if err != nil {
		out = s.set.Form.Failure(o, err, operation.RequestIDOf(err))
	}
	result, ok := out.(Result)
	if !ok {
		s.t.Fatalf("answered %#v", out)
	}
	return result
}

func (s *shop) call(name, arguments string) Result {
	s.t.Helper()
	return s.answer(s.tool(name), operation.Call{Arguments: []byte(arguments)})
}

// marks are files that scripts leave where they ran.
func (s *shop) ran() (out []string) {
	found, _ := filepath.Glob(filepath.Join(s.dir, "ran-*")) // the pattern is valid
	for _, f := range found {
		out = append(out, filepath.Base(f))
	}
	return out
}

const checkScript = "#!/bin/sh\n# Check the disk.\n# @param mount string required Where\n# @param limit integer " +
	"optional Percent\ntouch ran-check; echo used 91; echo over >&2; exit 3\n"

func TestARunIsAnsweredAndRecorded(t *testing.T) {
	s := newShop(t, "", map[string]string{"Check-Disk.sh": checkScript})
	got := s.call("check_disk", `{"mount":"/s3cret","limit":90}`)
	if got != (Result{Stdout: "used 91\n", Stderr: "over\n", ExitCode: 3}) {
		t.Errorf("%+v", got)
	}
	row, run := s.rows[0], s.runs["id-1"]
	path := filepath.Join(s.dir, defaultFolder, "Check-Disk.sh")
	if len(s.rows) != 1 || row.Outcome != record.OutcomeDone || row.Action != "check_disk" || row.RequestID != "id-1" ||
		row.Caller != "agent (tester)" || row.Session != "session-1" ||
		!cmp.Equal(row.Paths, []string{path}) || row.Digest != "sha256:"+run.Hash || len(run.Hash) != 64 {
		t.Errorf("row %+v", row)
	}
	if policy := s.authority.Policy.Hash(); row.Policy != policy || interruptedRow(run).Policy != policy {
		t.Errorf("judged by %q; rows have %q, and %q if it is interrupted", policy, row.Policy, interruptedRow(run).Policy)
	}
	for _, part := range []string{"exit code 3 after ", "; arguments: limit, mount\n", "stdout: used 91\n",
		"stderr: over"} {
		if !strings.Contains(row.Message, part) {
			t.Errorf("the row lacks %q: %s", part, row.Message)
		}
	}
	if strings.Contains(fmt.Sprint(row, run), "s3cret") {
		t.Error("the value of an argument was recorded")
	}
	if run.State != record.ScriptEnded || run.Ending.ExitCode != 3 || run.Ending.Stdout != "used 91\n" ||
		!cmp.Equal(run.Arguments, []string{"limit", "mount"}) || run.By.Tier != 2 {
		t.Errorf("run %+v", run)
	}
}

func TestWhatIsRefusedRunsNothingAndIsRecorded(t *testing.T) {
	look := "#!/bin/sh\n# @noparams\ntouch ran-look\n"
	for name, c := range map[string]struct {
		set       func(s *shop)
		arguments string
		exit      int
		says      string
		code      fault.Code
	}{
		"tier": {set: func(s *shop) { s.authority.Tier = 1 }, exit: exitNotRunable, says: "needs tier 2",
			code: fault.TierDenied},
		"read-only server": {set: func(s *shop) { s.authority.ReadOnly = "closed today" }, exit: exitNotRunable,
			says: "closed today", code: fault.ReadOnly},
		"toolset not enabled": {set: func(s *shop) { s.authority.Enabled = func(string) bool { return false } },
			exit: exitNotRunable, says: "CLAUDEOPS_TOOLSETS", code: fault.NotFound},
		"missing argument": {arguments: `{}`, exit: exitInvalid, says: `"mount" is missing`,
			code: fault.InvalidArgument},
		"unknown argument": {arguments: `{"mount":"/","-rf":true}`, exit: exitInvalid, says: `takes no argument "-rf"`,
			code: fault.InvalidArgument},
		"no object": {arguments: `[1]`, exit: exitInvalid, says: "must be a JSON object",
			code: fault.InvalidArgument},
		"a name that is twice": {arguments: `{"mount":"/","mount":"/etc"}`, exit: exitInvalid, says: "each name stands once",
			code: fault.InvalidArgument},
		"records that are full": {set: func(s *shop) { s.beginErr = fault.New(fault.Misconfigured, "the disk is full") },
			exit: exitNotRunable, says: "the disk is full", code: fault.Misconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, "", map[string]string{"Check-Disk.sh": checkScript, "look.sh": look})
			if c.set != nil {
				c.set(s)
			}
			if c.arguments == "" {
				c.arguments = `{"mount":"/"}`
			}
			got := s.call("check_disk", c.arguments)
			if got.ExitCode != c.exit || !strings.Contains(got.Stderr, c.says) || got.Stdout != "" || got.TimedOut {
				t.Errorf("%+v", got)
			}
			if len(s.ran()) > 0 {
				t.Error("it ran")
			}
			if len(s.rows) != 1 || s.rows[0].Code != c.code || s.rows[0].Outcome == record.OutcomeDone || len(s.runs) != 0 {
				t.Errorf("rows %+v, runs %v", s.rows, s.runs)
			}
		})
	}
}

func TestTheTierOfEachScript(t *testing.T) {
	script := "#!/bin/sh\n# @noparams\necho ok\n"
	files := map[string]string{"plain.sh": script, "look.sh": script, "strong.sh": script}
	const settings = "scripts: {look: {read_only: true}, strong: {tier: 3}}"
	for tier, may := range map[gitprovider.Tier][]string{1: {"look"}, 2: {"look", "plain"},
		3: {"look", "plain", "strong"}} {
		for _, name := range []string{"look", "plain", "strong"} {
			s := newShop(t, settings, files)
			s.authority.Tier = tier
			if got := s.call(name, `{}`); (got.Stdout == "ok\n") != slices.Contains(may, name) {
				t.Errorf("tier %d, %s: %+v", tier, name, got)
			}
			s.authority.Tier = 3
			if got := s.answer(s.tool(name), operation.Call{Ceiling: tier,
				Arguments: []byte("{}")}); (got.Stdout == "ok\n") != slices.Contains(may, name) {
				t.Errorf("ceiling %d, %s: %+v", tier, name, got)
			}
			s.authority.Tier = 1
			if got := s.answer(s.tool(name), operation.Call{Ceiling: tier, Person: true,
				Arguments: []byte("{}")}); (got.Stdout == "ok\n") != slices.Contains(may, name) {
				t.Errorf("a person with the ceiling %d, %s: %+v", tier, name, got)
			}
		}
	}
	s := newShop(t, settings, files)
	s.authority.ReadOnly = "closed"
	if got := s.call("look", `{}`); got.Stdout != "ok\n" || len(s.rows) != 1 {
		t.Errorf("a script that changes nothing, in a read-only server: %+v, %v", got, s.rows)
	}
}

func TestADryRunSaysWhatWouldBeRun(t *testing.T) {
	s := newShop(t, "", map[string]string{"Check-Disk.sh": checkScript})
	s.authority.DryRun = true
	got := s.call("check_disk", `{"mount":"-x; rm","limit":90}`)
	for _, part := range []string{"nothing was run", "Check-Disk.sh", `arguments: {"limit":90,"mount":"-x; rm"}`,
		`"--mount=-x; rm","--limit","90"]`} {
		if !strings.Contains(got.Stdout, part) {
			t.Errorf("the answer lacks %q: %+v", part, got)
		}
	}
	if got.ExitCode != 0 || len(s.ran()) > 0 || len(s.runs) > 0 || len(s.rows) != 1 ||
		s.rows[0].Outcome != record.OutcomeDryRun || !strings.Contains(s.rows[0].Message, "limit, mount") {
		t.Errorf("%+v, ran %v, rows %+v", got, s.ran(), s.rows)
	}
	if got := s.call("check_disk", `{}`); got.ExitCode != exitInvalid {
		t.Errorf("arguments that are not valid, in a dry run: %+v", got)
	}
}

func TestAChangedScriptIsAChangedTool(t *testing.T) {
	s := newShop(t, "", map[string]string{"a.sh": "#!/bin/sh\n# @noparams\necho one\n"})
	before := s.tool("a")
	file := filepath.Join(s.dir, defaultFolder, "a.sh")
	must.Do(t, os.WriteFile(file, []byte("#!/bin/sh\n# @param word string required\necho two\n"), 0o600))
	if after := s.tool("a"); string(after.Schemas.Input) == string(before.Schemas.Input) ||
		!strings.Contains(string(after.Schemas.Input), "word") {
		t.Errorf("schema %s", after.Schemas.Input)
	}
	if got := s.answer(before, operation.Call{Arguments: []byte("{}")}); got.ExitCode != exitInvalid ||
		!strings.Contains(got.Stderr, `"word" is missing`) {
		t.Errorf("the tool of before, arguments of before: %+v", got)
	}
	if got := s.answer(before, operation.Call{Arguments: []byte(`{"word":"x"}`)}); got.Stdout != "two\n" ||
		s.rows[len(s.rows)-1].Digest == "" {
		t.Errorf("the tool of before, arguments of now: %+v", got)
	}
	if err := os.Chmod(file, 0o666); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	if got := s.answer(before, operation.Call{Arguments: []byte(`{"word":"x"}`)}); got.ExitCode != exitNotFound ||
		got.Stdout != "" {
		t.Errorf("writable by others since: %+v", got)
	}
	must.Do(t, os.Remove(file))
	if got := s.answer(before, operation.Call{Arguments: []byte(`{"word":"x"}`)}); got.ExitCode != exitNotFound ||
		!strings.Contains(got.Stderr, file+" does not exist any more") {
		t.Errorf("removed: %+v", got)
	}
	if row := s.rows[len(s.rows)-1]; row.Outcome == record.OutcomeDone {
		t.Errorf("row %+v", row)
	}
}

func TestNothingFoundIsSaid(t *testing.T) {
	s := newShop(t, "", nil)
	list := s.set.Found(t.Context())
	if len(list) != 1 || list[0].Name != noScripts ||
		!strings.Contains(list[0].Tool.Description, filepath.Join(s.dir, defaultFolder)) {
		t.Fatalf("%+v", list)
	}
	if got := s.call(noScripts, `{}`); got.ExitCode != exitNotFound ||
		!strings.Contains(got.Stderr, "No scripts were found") {
		t.Errorf("%+v", got)
	}
	s.service.options.Problem = "the settings are broken"
	if list := s.set.Found(t.Context()); len(list) != 1 ||
		!strings.Contains(list[0].Tool.Description, "settings are broken") {
		t.Errorf("%+v", list)
	}
}

func TestPeopleSeeScriptsAndRuns(t *testing.T) {
	s := newShop(t, "", map[string]string{"Check-Disk.sh": checkScript, "odd.sh": "#!/bin/sh\n"})
	if err := os.Chmod(filepath.Join(s.dir, defaultFolder, "odd.sh"), 0o777); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	s.authority.Tier = 1
	ask := func(name, arguments string, into any) error {
		out, err := s.tool(name).Handle(t.Context(), operation.Call{Ceiling: operation.UncappedTier,
			Arguments: []byte(arguments)})
		if err == nil {
			text, _ := json.Marshal(out)
			err = json.Unmarshal(text, into)
		}
		return err
	}
	var list ScriptList
	if err := ask("list_scripts", `{}`, &list); err != nil || len(list.Scripts) != 1 ||
		list.Scripts[0].Summary != "Check the disk." || len(list.Skipped) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	var shown ScriptDetail
	if err := ask("get_script", `{"name":"check_disk"}`, &shown); err != nil || shown.TimeoutSeconds != 120 ||
		shown.InputSchema["required"] == nil {
		t.Errorf("%+v, %v", shown, err)
	}
	if err := ask("get_script", `{"name":"gone"}`, &shown); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	var started StartedScript
	if err := ask("start_script", `{"script":"check_disk","arguments":{"mount":"/"}}`, &started); err != nil ||
		started.ExitCode != 3 || s.runs[started.ID].Script != "check_disk" {
		t.Errorf("%+v, %v", started, err)
	}
	var run ScriptRunDetail
	if err := ask("get_script_run", `{"id":"`+started.ID+`"}`, &run); err != nil || run.Stdout != "used 91\n" ||
		run.ExitCode != 3 {
		t.Errorf("%+v, %v", run, err)
	}
	var runs ScriptRunList
	if err := ask("list_script_runs", `{}`, &runs); err != nil || len(runs.Runs) != 1 {
		t.Errorf("%+v, %v", runs, err)
	}
	for _, arguments := range []string{`{}`, `{"script":1}`, `{"script":"check_disk","arguments":[]}`,
		`{"script":"check_disk","more":1}`, `{"script":"check_disk"}`} {
		if err := ask("start_script", arguments, &started); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	if len(s.runs) != 1 {
		t.Errorf("%d runs", len(s.runs))
	}
}

func TestOurTokensAreTakenOutOfOutput(t *testing.T) {
	s := newShop(t, "output_cap_bytes: 20", map[string]string{
		"tells.sh":  "#!/bin/sh\n# @noparams\necho a s3cret b\n",
		"cut.sh":    "#!/bin/sh\n# @noparams\nprintf 1234567890123456s3cret789\n",
		"binary.sh": "#!/bin/sh\n# @noparams\nprintf '\\0\\377s3cret'\n",
	})
	if got := s.call("tells", `{}`); got.Stdout != "a [redacted] b\n" {
		t.Errorf("%+v", got)
	}
	if got := s.call("cut", `{}`); got.Stdout != "1234567890123456[red"+truncatedNotice {
		t.Errorf("a token at the cap: %+v", got)
	}
	if got := s.call("binary", `{}`); strings.Contains(got.Stdout, "czNjcmV0") ||
		strings.Contains(got.Stdout, "zM2NyZX") || !strings.Contains(got.Stdout, "base64") {
		t.Errorf("%+v", got)
	}
	if text := fmt.Sprint(s.rows, s.runs); strings.Contains(text, "s3c") {
		t.Errorf("recorded: %s", text)
	}
}
