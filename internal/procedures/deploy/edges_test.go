package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/change"
)

func FuzzConfig(f *testing.F) {
	f.Add(configuration)
	for _, seed := range []string{
		"\ufeff" + configuration, strings.ReplaceAll(configuration, "\n", "\r\n"), strings.TrimRight(configuration, "\n"),
		"version: 1\n\tprofiles: {}\n", "---\n" + configuration + "...\n",
		"version: 1\nprofiles: {default: {include_tags: [größe, 手順, '🙂', \"a\\tb\"]}}\nmodules: [{id: 'skill:Übergabe', " +
			"type: skill, tags: [größe], source: {local_path: {path: m/手順}}}]\n",
		"version: 1\nprofiles: &p {default: {include_tags: [x]}, other: {include_modules: [a], exclude_modules: " +
			"[b]}}\ntargets: {codex: {mode: files, scope: both, options: {codex_home: ~/c, write_user_skills: " +
			"'no'}}}\nmodules: []\n",
		"version: 1\nprofiles: {default: {}}\nmodules: [{id: 'a', type: command, enabled: false, targets: [cursor], " +
			"metadata: {x: [[1, [2]], {y: ~}]}, source: {local_path: {path: ../x}}}]\n",
		"version: 1\nprofiles: {default: {}}\nmodules: [{id: " + strings.Repeat("x", 5000) +
			", type: prompt, source: {git: {url: git@e.org:a/b.git, ref: v1.2.3, subdir: a/b, shallow: false}}}]\n",
	} {
		f.Add(seed)
	}
	f.Add("version: 1\nprofiles: {default: {}}\nmodules: [{id: m, type: prompt, source: {git: {url: 'https://e.org/x', " +
		"ref: a}}}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseConfig([]byte(text))
		if err != nil {
			if codeOf(err) == "" {
				t.Errorf("an error without a code: %v", err)
			}
			return
		}
		for _, m := range c.Modules {
			if p := m.Source.LocalPath; p != nil && change.Leaves(p.Path) != "" {
				t.Errorf("the path %q leaves the repository", p.Path)
			}
			if g := m.Source.Git; g != nil && (strings.HasPrefix(g.URL, "-") || strings.HasPrefix(g.Ref, "-") ||
				g.Subdir != "" && change.Leaves(g.Subdir) != "") {
				t.Errorf("git is handed %+v", g)
			}
			if name := skillName(m.ID); strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
				t.Errorf("the skill's folder is %q", name)
			}
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add("SKILL.md", "--- a/SKILL.md\n+++ b/SKILL.md\n@@ -1 +1 @@\n-a\n+b\n")
	for _, seed := range patchSeeds() {
		f.Add("SKILL.md", seed)
	}
	f.Add("x", "--- /dev/null\n+++ b/../x\n")
	f.Fuzz(func(t *testing.T, rel, text string) {
		if (patchFile{rel: rel, text: text}).bad() != "" {
			return
		}
		parts, _ := takeApart(text)
		again, why := takeApart(parts.alone("other.md"))
		if why != "" || again.isFor("other.md") != "" || !slices.Equal(again.hunks, parts.hunks) {
			t.Errorf("%q is not the same alone: %s %s", text, why, again.isFor("other.md"))
		}
		if head, _, _ := strings.Cut(parts.to[0], "\t"); strings.TrimPrefix(head, "b/") != rel {
			t.Errorf("%q is for %q, not %q", text, head, rel)
		}
	})
}
