package cli

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/agents/door"
)

// A connection has its own rights and the policy as it is by then; the rest is shared.
func TestAConnectionSharesAllButItsRights(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version: 1\ncaps: {creations_per_hour: 7}\n")
	env := map[string]string{
		"CLAUDEOPS_TIER": "3", "CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"), "CLAUDEOPS_POLICY": policy,
		"CLAUDEOPS_TOOLSETS": "pr,packages",
		"GITHUB_TOKEN":       "tok-7f3a9c2e51d84b60", "SECRET_OF_ANOTHER": "x", "CLAUDEOPS_AGENT_ENV": "FOR_AGENTS",
		"FOR_AGENTS": "yes",
	}
	a := &commandLine{streams: Streams{Out: io.Discard, Err: io.Discard},
		lookup: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	p := a.program().Wire(app.Needs{})
	t.Cleanup(func() { _ = a.program().Close() })
	rights := door.Rights{Session: "01J0000000000000000000000A", Tier: 1, DryRun: true, ReadOnly: true,
		Toolsets: []string{"pr"}, Folder: dir}
	own := app.WithRights(a.program(), p, rights)
	q := own.Parts
	if got := q.Flow.CurrentAuthority(); got.Tier != 1 || !got.DryRun || got.ReadOnly == "" ||
		got.Session != rights.Session {
		t.Errorf("authority %+v", got)
	}
	if got := p.Flow.CurrentAuthority(); got.Tier != 3 || got.DryRun || got.ReadOnly != "" || got.Session != "" {
		t.Errorf("that of the process has become %+v", got)
	}
	if q.Store != p.Store || q.Scanner != p.Scanner || q.Providers != p.Providers {
		t.Error("store, scanner or providers are not shared")
	}
	if names := app.ToolsetNames(own.EnabledToolsets()); len(names) != 1 || names[0] != "pr" {
		t.Errorf("toolsets %v", names)
	}
	if folder, err := app.WorkingFolder(own); folder != dir || err != nil {
		t.Errorf("folder %q, %v", folder, err)
	}
	for name, want := range map[string]string{"FOR_AGENTS": "yes", "SECRET_OF_ANOTHER": "",
		"GITHUB_TOKEN": env["GITHUB_TOKEN"]} {
		if got, _ := own.Options().Environment(name); got != want {
			t.Errorf("%s is %q, want %q, as the MCP server of a session has it", name, got, want)
		}
	}
	// What the operator changes holds for a connection that is there already.
	write("version: 1\ncaps: {creations_per_hour: 9}\n")
	becomes(t, "the policy that was changed holds", func() bool {
		return q.Flow.CurrentAuthority().Policy.Limits.Caps.CreationsPerHour == 9
	})
	write("version: 1\nnonsense: true\n")
	full := app.WithRights(a.program(), p, door.Rights{Tier: 3}).Parts
	becomes(t, "a policy that is broken by now lets no agent propose", func() bool {
		return full.Flow.CurrentAuthority().ReadOnly != ""
	})
	write("version: 1\ndry_run: true\n")
	becomes(t, "a policy that was mended says dry run", func() bool {
		now := full.Flow.CurrentAuthority()
		return now.ReadOnly == "" && now.DryRun
	})
}

// becomes waits until something is so, a minute at most.
func becomes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
