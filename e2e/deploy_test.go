//go:build e2e && linux

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// What is deployed to Claude Code is what the real Claude CLI offers its model, and no longer after a rollback.
func TestClaudeOffersWhatWasDeployed(t *testing.T) {
	w := newWorld(t, "3")
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "pr,deploy", "true"
	w.project(t, map[string]string{
		"work/.keep": "",
		".agentpack/repo/agentpack.yaml": `version: 1
profiles: {default: {include_tags: [base]}, first: {include_modules: ["command:tidy-logs"]}}
targets: {claude_code: {scope: project, options: {write_repo_skills: true}}}
modules:
  - {id: "command:tidy-logs", type: command, tags: [base], source: {local_path: {path: modules/tidy-logs.md}}}
  - {id: "command:free-inodes", type: command, tags: [base], source: {local_path: {path: modules/free-inodes.md}}}
  - {id: "skill:weigh-disks", type: skill, tags: [base], source: {local_path: {path: modules/weigh-disks}}}
`,
		".agentpack/repo/modules/tidy-logs.md":   "---\ndescription: Tidy the logs of the kitchen host\n---\nTidy them.\n",
		".agentpack/repo/modules/free-inodes.md": "---\ndescription: Free inodes on the cellar host\n---\nFree them.\n",
		".agentpack/repo/modules/weigh-disks/SKILL.md": "---\nname: weigh-disks\ndescription: Weigh the disks of the attic " +
			"host\n---\nWeigh them.\n",
	})
	first := w.deploys(t, "apply", "--yes", "--profile", "first")
	w.deploys(t, "apply", "--yes")
	for what, want := range map[string]bool{"the kitchen host": true, "the cellar host": true, "the attic host": true} {
		if got := strings.Contains(w.offers(t), what); got != want {
			t.Errorf("after the deployment: %s is offered: %t", what, got)
		}
	}
	w.deploys(t, "rollback", "--yes", "--to", first)
	offered := w.offers(t)
	for what, want := range map[string]bool{"the kitchen host": true, "the cellar host": false, "the attic host": false} {
		if got := strings.Contains(offered, what); got != want {
			t.Errorf("after the rollback: %s is offered: %t", what, got)
		}
	}
}

// deploys runs claudeops deploy in the folder work, and gives the snapshot that it made.
func (w *world) deploys(t *testing.T, args ...string) string {
	t.Helper()
	got := run(t, program{path: claudeops(t), args: append([]string{"deploy", "--json"}, args...),
		dir: filepath.Join(w.home, "work"), env: w.environment()})
	if got.code != 0 {
		t.Fatalf("deploy %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	answer := decode[struct {
		Data struct {
			SnapshotID string `json:"snapshot_id"`
		} `json:"data"`
	}](t, got.stdout)
	return answer.Data.SnapshotID
}

// offers is all that the Claude CLI, started in the folder work, sends to its model: system prompt, messages and tools.
func (w *world) offers(t *testing.T) string {
	t.Helper()
	stub := newMessagesStub(t, scripted())
	stub.asked = func(string, []seenResult) reply { return say("done") }
	got := run(t, program{
		path: installed(t, "@anthropic-ai/claude-code-linux-*/claude"),
		args: []string{"-p", "Look after the cluster.", "--output-format", "stream-json", "--verbose"},
		dir:  filepath.Join(w.home, "work"),
		env: w.environment("ANTHROPIC_BASE_URL="+stub.URL, "ANTHROPIC_API_KEY=dummy",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"),
	})
	if got.code != 0 {
		t.Fatalf("claude: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	var all strings.Builder
	for _, r := range stub.requests(t) {
		all.WriteString(r.everything())
		for _, tool := range r.Tools {
			all.WriteString(tool.Description)
		}
	}
	return all.String()
}
