//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The story of skills where people keep them: each real client reads a skill of Claude Code's folder and one of the
// folder that agents share, mends both in one pull request, and a person merges it.
func TestEachClientMendsSkillsFromReadingToMerge(t *testing.T) {
	for name, converse := range map[string]func(t *testing.T, w *world, m model) []seenResult{
		"claude": func(t *testing.T, w *world, m model) []seenResult { return agent{world: w}.converse(t, m).results },
		"codex":  codex().tell,
		"gemini": gemini().tell,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "2")
			w.hasSkills(t)
			w.mounts(t)
			seen := converse(t, w, mendsSkills(t))
			if last := seen[len(seen)-1].text; !strings.Contains(last, `"number":1`) {
				t.Fatalf("the skills were not proposed: %s", last)
			}
			o := operator{w, w.home}
			o.review(t, "approve")
			o.review(t, "merge")
			for _, path := range skillFiles() {
				if got := w.git(t, "", "show", "main:"+path); !strings.HasSuffix(got, "Warn at 85 %.\n") {
					t.Errorf("%s is %q", path, got)
				}
			}
		})
	}
}

func skillFiles() []string {
	return []string{".agents/skills/disk/SKILL.md", ".claude/skills/disk/SKILL.md"}
}

// hasSkills adds a skill to each place, and a policy that opens both to tier 2.
func (w *world) hasSkills(t *testing.T) {
	t.Helper()
	files := map[string]string{}
	for _, path := range skillFiles() {
		files[path] = "---\nname: disk\ndescription: Look at a disk that fills up.\n---\n\n# Disk\n\nWarn at 90 %.\n"
	}
	w.git(t, strings.Replace(importStream(files), "Seed\n", "Seed\nfrom refs/heads/main^0\n", 1), "fast-import", "--quiet")
	policy := filepath.Join(w.home, "policy.yaml")
	if err := os.WriteFile(policy, []byte("version: 1\nscope: {kinds: [claude-skills, agent-skills]}\n"+
		"tiers: {2: {kinds: [claude-skills, agent-skills]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.vars["CLAUDEOPS_POLICY"] = policy
}

// mendsSkills reads each skill, and proposes both with the versions that it read.
func mendsSkills(t *testing.T) model {
	version := regexp.MustCompile(`base_sha ([0-9a-f]{40})`)
	return func(results []seenResult) reply {
		paths := skillFiles()
		if n := len(results); n < len(paths) {
			return free("ReadMcpResourceTool", map[string]any{"server": "claudeops",
				"uri": fmt.Sprintf("claudeops://demo/home-cluster/file/%s", paths[n])})
		} else if n > len(paths) {
			return say("done")
		}
		var files []any
		for i, path := range paths {
			found := version.FindStringSubmatch(results[i].text)
			if found == nil {
				t.Errorf("no version of %s is told: %s", path, results[i].text)
				return say("done")
			}
			files = append(files, map[string]any{"path": path, "action": "update", "base_sha": found[1],
				"edits": []any{map[string]any{"old": "Warn at 90 %.", "new": "Warn at 85 %."}}})
		}
		proposal := ofRepository()
		proposal["title"], proposal["body"] = "Warn earlier about disks", "## Why\n\nThe disk was full within an hour.\n"
		proposal["change_type"], proposal["files"] = "skill", files
		return use("create_pr", proposal)
	}
}
