package deploy

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// TestOneSkillForTwoTargets deploys a skill for Codex's folder of the user and for Claude Code's of the project, twice,
// and rolls back: both have what they had.
func TestOneSkillForTwoTargets(t *testing.T) {
	skill := func(version string) string {
		return "---\nname: look\ndescription: Looks\n---\n\n# look " + version + "\n"
	}
	b := newBench(t, map[string]string{
		"agentpack/repo/" + configName: "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets:\n" +
			"  codex: {scope: user, options: {write_agents_global: false, write_user_prompts: false}}\n  claude_code: " +
			"{options: {write_repo_skills: true, write_repo_commands: false}}\n" +
			"modules: [{id: 'skill:look', type: skill, tags: [x], targets: [codex, claude_code], source: {local_path: {path: m}}}]\n",
		"agentpack/repo/m/SKILL.md": skill("v1"),
	})
	places := []string{"user/.codex/skills", "project/.claude/skills"}
	have := func(version string) {
		t.Helper()
		for _, place := range places {
			text, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(place), "look", "SKILL.md"))
			if err != nil || string(text) != skill(version) {
				t.Errorf("%s: %q, %v", place, text, err)
			}
		}
	}
	first := b.mustOK(ToolApply, `{"yes":true}`)
	have("v1")
	for place, target := range map[string]string{places[0]: "codex", places[1]: "claude_code"} {
		if _, err := os.Stat(filepath.Join(b.dir, filepath.FromSlash(place), ".agentpack.manifest."+target+
			".json")); err != nil {
			t.Error(err)
		}
	}
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/m/SKILL.md": skill("v2")})
	b.mustOK(ToolApply, `{"yes":true}`)
	have("v2")
	back := b.mustOK(ToolRollback, `{"yes":true,"to":"`+first["snapshot_id"].(string)+`"}`)
	if back["rolled_back_to"] != first["snapshot_id"] {
		t.Errorf("%v", back)
	}
	have("v1")
}

// TestAServerThatGivesNoSingleCommit fetches the branches instead.
func TestAServerThatGivesNoSingleCommit(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in of git is a script")
	}
	url, _ := upstream(t)
	s := setup(t, gitModule(url, ", ref: old"))
	log := filepath.Join(t.TempDir(), "asked")
	script := "#!/bin/sh\ncase \" $* \" in *' --depth=1 '*) echo shallow >> '" + log +
		"'; echo 'fatal: no such remote ref' >&2; exit 128;; esac\nexec '" + s.Git.git.Program + "' \"$@\"\n"
	s.Git.git.Program = filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(s.Git.git.Program, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	got, err := desiredTexts(t, s)
	if diff := cmp.Diff(map[string]string{".github/prompts/ask.prompt.md": "one"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if text, err := os.ReadFile(log); err != nil || strings.TrimSpace(string(text)) != "shallow" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestAModuleBelowAFolderThatModulesLeaveOut: .agentpack is left out below a module, and not above it.
func TestAModuleBelowAFolderThatModulesLeaveOut(t *testing.T) {
	b := newBench(t, map[string]string{
		"agentpack/.agentpack/repo/" +
			configName: "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {vscode: {}}\nmodules: [{id: ask, " +
			"type: prompt, tags: [x], source: {local_path: {path: .agentpack/m}}}]\n",
		"agentpack/.agentpack/repo/.agentpack/m/ask.md":          "Ask.\n",
		"agentpack/.agentpack/repo/.agentpack/m/.agentpack/x.md": "left out\n",
	})
	b.settings.Home = filepath.Join(b.dir, "agentpack", ".agentpack")
	for range 2 {
		if got := b.mustOK(ToolPlan, `{}`); len(got["changes"].([]any)) != 1 {
			t.Errorf("%v", got)
		}
	}
	b.mustOK(ToolApply, `{"yes":true}`)
	if text, err := os.ReadFile(filepath.Join(b.dir, "project", ".github", "prompts",
		"ask.prompt.md")); string(text) != "Ask.\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
