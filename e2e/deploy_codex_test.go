//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is deployed to Codex is what the real Codex CLI sends to its model, and no longer after a rollback.
func TestCodexSendsWhatWasDeployed(t *testing.T) {
	w := newWorld(t, "3")
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "pr,deploy", "true"
	model := newOtherModel(t, scripted())
	w.project(t, map[string]string{
		"work/.git/HEAD": "ref: refs/heads/main\n", "work/.git/config": "[core]\n\trepositoryformatversion = 0\n",
		"work/.git/objects/.keep": "", "work/.git/refs/.keep": "",
		".codex/config.toml": codex().around("", model.URL),
		".agentpack/repo/agentpack.yaml": `version: 1
profiles: {default: {include_tags: [base]}, first: {include_modules: [rules]}}
targets: {codex: {scope: both}}
modules:
  - {id: rules, type: instructions, tags: [base], source: {local_path: {path: modules/rules}}}
  - {id: more, type: instructions, tags: [base], source: {local_path: {path: modules/more}}}
  - {id: "skill:weigh-disks", type: skill, tags: [base], source: {local_path: {path: modules/weigh-disks}}}
`,
		".agentpack/repo/modules/rules/AGENTS.md": "Never restart the kitchen host.\n",
		".agentpack/repo/modules/more/AGENTS.md":  "Ask before you touch the cellar host.\n",
		".agentpack/repo/modules/weigh-disks/SKILL.md": "---\nname: weigh-disks\ndescription: Weigh the disks of the attic " +
			"host\n---\nWeigh them.\n",
	})
	before := w.sends(t, model)
	first := w.deploys(t, "apply", "--yes", "--profile", "first")
	w.deploys(t, "apply", "--yes")
	all := w.sends(t, model)
	w.deploys(t, "rollback", "--yes", "--to", first)
	after := w.sends(t, model)
	for what, want := range map[string][3]bool{
		"Never restart the kitchen host": {false, true, true}, "you touch the cellar host": {false, true, false},
		"the disks of the attic host": {false, true, false},
	} {
		for i, sent := range []string{before, all, after} {
			if got := strings.Contains(sent, what); got != want[i] {
				t.Errorf("%s is sent %t, want %t, in step %d", what, got, want[i], i)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(w.home, ".codex", "skills", "weigh-disks")); err == nil {
		t.Error("the skill is still there")
	}
}

// sends is all that the Codex CLI, started in the folder work, sends to its model.
func (w *world) sends(t *testing.T, model *otherModel) string {
	t.Helper()
	before, _ := model.told()
	got := run(t, program{
		path: installed(t, ".bin/codex"), args: []string{"exec", "--skip-git-repo-check", "go"},
		dir: filepath.Join(w.home, "work"), may: 2 * patience,
		env: w.environment("STUB_KEY=x"),
	})
	all, _ := model.told()
	sent := strings.TrimPrefix(all, before)
	if got.code != 0 || sent == "" {
		t.Fatalf("codex: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	return sent
}
