//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// skillFiles are skills where people keep them.
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
	must.Do(t, os.WriteFile(policy, []byte("version: 1\nscope: {kinds: [claude-skills, agent-skills]}\n"+
		"tiers: {2: {kinds: [claude-skills, agent-skills]}}\n"), 0o600))
	w.vars["CLAUDEOPS_POLICY"] = policy
}
