package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
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

func TestOnlyASoundConfigurationMayBeProposed(t *testing.T) {
	t.Parallel()
	const sound = "version: 1\nprofiles:\n  default: {}\nmodules:\n  - {id: 'skill:disk', type: skill, source: " +
		"{local_path: {path: modules/disk}}}\n"
	for name, c := range map[string]struct {
		path, content, says string
		line                int
	}{
		"sound":    {configName, sound, "", 0},
		"a module": {"modules/disk/steps.md", "anything", "", 0},
		"a skill":  {"modules/disk/SKILL.md", "---\nname: disk\ndescription: Disks\n---\n", "", 0},
		"a skill whose text has a colon": {"modules/disk/SKILL.md", "---\nname: disk\ndescription: Use when: x\n---\n", "",
			0},
		"a skill with a mark": {"modules/disk/SKILL.md", "\ufeff--- \r\nname: disk\r\ndescription: Disks\r\n---\r\n", "", 0},
		"a broken skill":      {"modules/disk/SKILL.md", "anything", "no front matter", 0},
		"no YAML":             {configName, "version: 1\n\tb", "agentpack.yaml", 2},
		"a version":           {configName, strings.Replace(sound, "1", "7", 1), "version 7", 0},
		"no profile":          {configName, "version: 1\n", "default", 0},
		"a wrong target":      {configName, sound + "targets: {emacs: {}}\n", "emacs", 0},
	} {
		problems := FileKind().Validate(c.path, c.content)
		switch {
		case c.says == "" && len(problems) > 0:
			t.Errorf("%s: %v", name, problems)
		case c.says != "" && (len(problems) == 0 || !strings.Contains(problems[0].Message, c.says) ||
			problems[0].Line != c.line):
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

// A name that git or a file system treats as .git would affect anyone's git in the target.
func TestAModuleHasNothingThatGitTakesForItsOwnFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".GIT", ".git.", ".git ", "GIT~1", "gi7d29~4", ".g\u200cit", "a\u202eb"} {
		for _, at := range []string{"modules/look/", "modules/look/deep/", "overlays/"} {
			b := newBench(t, life())
			if at == "overlays/" {
				at += fsKey("skill:look") + "/"
			}
			operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + at + name + "/config": "[core]\n"})
			s := NewService(b.settings)
			for range 2 { // the second time with what is remembered
				if _, err := s.Plan(t.Context(), Request{}); codeOf(err) != ConfigInvalid ||
					!strings.Contains(err.Error(), "git's own folder") && !strings.Contains(err.Error(), "cannot be seen") {
					t.Errorf("%s%+q: %v", at, name, err)
				}
			}
			if _, _, err := s.Apply(t.Context(), Request{}, change.Approval{}, false); codeOf(err) != ConfigInvalid {
				t.Errorf("%s%+q was deployed: %v", at, name, err)
			}
		}
	}
}

func TestACheckoutsOwnGitFolderIsLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/modules/look/.git/config": "[core]\n",
		"agentpack/repo/modules/look/.gitignore": "x\n"})
	b.mustOK(ToolApply, `{"yes":true}`)
	for name := range b.tree("project") {
		if strings.Contains(name, "/.git/") {
			t.Errorf("%s was deployed", name)
		}
	}
}
