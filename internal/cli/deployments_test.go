package cli

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/records/record"
)

// What a page of the dashboard fetches is in the audit, as what a tool fetches is; so is a fetch that fails.
func TestWhatAPageFetchesIsInTheAudit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	far := filepath.Join(dir, "far", "joe", "infra")
	url := "file://" + filepath.ToSlash(far)
	operationtest.WriteFiles(t, dir, map[string]string{
		"far/joe/infra/ask.md": "Ask.\n", "home/.keep": "", "project/.keep": "",
		"agentpack/repo/agentpack.yaml": "version: 1\nprofiles: {default: {include_modules: [p]}}\ntargets: {vscode: " +
			"{}}\nmodules: [{id: p, type: prompt, source: {git: {url: '" + url + "'}}}]\n",
	})
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = far
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	env := map[string]string{
		"HOME": filepath.Join(dir, "home"), "CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"),
		"AGENTPACK_HOME": filepath.Join(dir, "agentpack"), "CLAUDEOPS_TOOLSETS": "pr,deploy",
	}
	a := &commandLine{streams: Streams{Out: io.Discard, Err: io.Discard},
		lookup: func(k string) (string, bool) { v, ok := env[k]; return v, ok }, folder: filepath.Join(dir, "project")}
	p := a.program().Wire(app.Needs{})
	t.Cleanup(func() { _ = a.program().Close() })
	d := app.NewDeployments(p)
	rows := func() []record.RecordedAttempt {
		t.Helper()
		list, err := p.Store.Audit.Page(t.Context(), record.AuditQuery{Ascending: true, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if _, err := d.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Preview(t.Context(), deploy.Candidate{Provider: "gitea", Owner: "joe", Name: "infra",
		Commit: strings.Repeat("0", 40)}); err == nil {
		t.Error("a commit that is not there")
	}
	got := rows()
	if len(got) != 2 || got[0].Outcome != record.OutcomeDone || got[1].Outcome == record.OutcomeDone ||
		got[1].Repo != "infra" {
		t.Fatalf("%+v", got)
	}
	for _, row := range got {
		if row.Door != record.DoorWeb || row.Action != deploy.ToolPlan ||
			!strings.Contains(row.Message, "fetched from "+url) {
			t.Errorf("%+v", row)
		}
	}
}
