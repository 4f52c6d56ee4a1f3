package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/records/access"
)

// desk has one script and one run.
type desk struct {
	mu      sync.Mutex
	started []string
	refused []string
}

func (d *desk) List(context.Context, operation.Call) (scripts.ScriptList, error) {
	return scripts.ScriptList{
		Scripts: []scripts.ScriptItem{{Name: "check_disk", Summary: "Check <b>the disk</b>", Interpreter: "sh", Tier: 2,
			Parameters: 2}},
		Skipped: []scripts.SkippedScript{{Path: "/ops/open.sh", Why: "can be written by every user"}},
	}, nil
}

func (d *desk) Show(_ context.Context, _ operation.Call, name string) (scripts.ScriptDetail, error) {
	if name != "check_disk" {
		return scripts.ScriptDetail{}, fault.New(fault.NotFound, "there is no script %s", name)
	}
	list, _ := d.List(context.Background(), operation.Call{})
	schema := scripts.ParseHeader(
		"# @param mount string required Where\n# @param limit integer optional\n# @param names string[] optional\n").Schema()
	return scripts.ScriptDetail{ScriptItem: list.Scripts[0], InputSchema: schema, TimeoutSeconds: 120}, nil
}

func (d *desk) Runs(context.Context, operation.Call, scripts.ScriptRunsRequest) (scripts.ScriptRunList, error) {
	return scripts.ScriptRunList{Runs: []scripts.ScriptRunItem{{ID: "run-1", Script: "check_disk", State: "ended",
		ExitCode: 3, StartedAt: "2026-01-01T00:00:00Z", Arguments: []string{"mount"}}}}, nil
}

func (d *desk) Run(ctx context.Context, call operation.Call, _ string) (scripts.ScriptRunDetail, error) {
	runs, _ := d.Runs(ctx, call, scripts.ScriptRunsRequest{})
	return scripts.ScriptRunDetail{ScriptRunItem: runs.Runs[0], Stdout: "<script>alert(1)</script> 91 %"}, nil
}

func (d *desk) Start(_ context.Context, call operation.Call, name string, begun func(string)) (scripts.StartedScript,
	error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started = append(d.started, name+" "+string(call.Arguments)+" tier "+call.Ceiling.String())
	begun("run-1")
	return scripts.StartedScript{ID: "run-1"}, nil
}

func (d *desk) Refused(_ context.Context, _ operation.Call, name string, why *fault.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = append(d.refused, name+" "+string(why.Code))
}

func (d *desk) said() (started, refused string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.started, "; "), strings.Join(d.refused, "; ")
}

func TestPagesShowScriptsAndTheirRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Toolsets.Pages.Scripts = &desk{} })
	for target, want := range map[string][]string{
		"/scripts": {"check_disk", "Check <b>the disk</b>", "/ops/open.sh", "can be written by every user",
			"Failed (exit code 3)", "Last runs"},
		"/scripts/check_disk": {"needs the scope operate", `"additionalProperties": false`, "Failed (exit code 3)"},
		"/script-runs/run-1":  {"<script>alert(1)</script> 91 %", "exit code 3", "values are not kept"},
	} {
		w.page(target, 200).has(want...)
	}
	w.page("/scripts/gone", 404)
}

func TestAPersonRunsAScriptFromItsPage(t *testing.T) {
	t.Parallel()
	d := &desk{}
	w := newWorld(t, func(w *world) { w.web.Toolsets.Pages.Scripts = d })
	operator := bearer(w.token("operator", gitprovider.TierRemediate, access.Read, access.Operate))
	w.page("/scripts/check_disk", 200, operator).has("mount (required)", "One in a line.")
	answer := w.submit("/scripts/check_disk/run",
		url.Values{"arg.mount": {"/"}, "arg.limit": {"9"}, "arg.names": {"a\r\nb\r\n"}, "other": {"x"}}, operator)
	if started, refused := d.said(); answer.StatusCode != http.StatusSeeOther ||
		answer.Header.Get("Location") != "/script-runs/run-1" ||
		!strings.HasPrefix(started, `check_disk {"limit":9,"mount":"/","names":["a","b"]} tier `) || refused != "" {
		t.Errorf("%d %v, started %q, refused %q", answer.StatusCode, answer.Header, started, refused)
	}
	answer = w.submit("/scripts/check_disk/run", url.Values{"arg.limit": {"many"}}, operator)
	if started, refused := d.said(); answer.StatusCode != http.StatusBadRequest ||
		strings.Count(started, "check_disk") != 1 || refused != "check_disk invalid_argument" {
		t.Errorf("%d, started %q, refused %q", answer.StatusCode, started, refused)
	}
	reader := bearer(w.token("reader", gitprovider.TierRemediate, access.Read))
	answer = w.submit("/scripts/check_disk/run", url.Values{"arg.mount": {"/"}}, reader)
	if started, refused := d.said(); answer.StatusCode != http.StatusForbidden ||
		strings.Count(started, "check_disk") != 1 || !strings.HasSuffix(refused, "; check_disk forbidden") {
		t.Errorf("%d, started %q, refused %q", answer.StatusCode, started, refused)
	}
}
