package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// agentpackOf is a configuration with a module of each line: type, id and path.
func agentpackOf(modules ...string) string {
	text := "version: 1\nprofiles: {default: {include_tags: [a]}}\ntargets:\n  codex: {mode: files, scope: user}\n  " +
		"claude_code: {mode: files, scope: user, options: {write_user_skills: true}}\nmodules:\n"
	for _, line := range modules {
		f := strings.SplitN(line, "|", 3)
		text += fmt.Sprintf("  - {id: %q, type: %s, tags: [a], source: {local_path: {path: %q}}}\n", f[1], f[0], f[2])
	}
	return text
}

func TestSkillsOfEveryScriptHaveFoldersOfTheirOwn(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	var modules []string
	names := []string{"日本", "中文", "größe", "with space", "plain", "v1.2", "(draft)"}
	for _, name := range names {
		files["agentpack/repo/modules/"+name+"/SKILL.md"] = "---\nname: x\ndescription: d\n---\n" + name + "\n"
		modules = append(modules, "skill|skill:"+name+"|modules/"+name)
	}
	files["agentpack/repo/agentpack.yaml"] = agentpackOf(modules...)
	b := newBench(t, files)
	b.mustOK("deploy_apply", `{"yes":true}`)
	for _, name := range names {
		for _, target := range []string{".codex", ".claude"} {
			text, err := os.ReadFile(filepath.Join(b.dir, "user", target, "skills", name, "SKILL.md"))
			if err != nil || !strings.HasSuffix(string(text), name+"\n") {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
	twice := newBench(t, map[string]string{
		"agentpack/repo/agentpack.yaml": agentpackOf("skill|skill:gr\u00f6\u00dfe|modules/a",
			"skill|skill:gro\u0308\u00dfe|modules/b"),
		"agentpack/repo/modules/a/SKILL.md": "---\nname: x\ndescription: d\n---\n",
		"agentpack/repo/modules/b/SKILL.md": "---\nname: x\ndescription: d\n---\n",
	})
	if out := twice.ask("plan", `{}`); out.OK || out.Errors[0].Code != "E_DESIRED_STATE_CONFLICT" {
		t.Errorf("one name in two spellings: %+v", out)
	}
	for id, want := range map[string]string{
		"skill:a b": "a b", "skill:日本": "日本", "skill: a": "skill__a", "skill:a ": "skill_a_", "skill:a.": "skill_a_",
		"skill:a:b": "skill_a_b", "skill:a/b": "skill_a_b",
		"skill:.git": "skill__git", "skill:-x": "skill_-x", "skill:a\u200bb": "skill_a_b", "skill:a\x01": "skill_a_",
		"skill:a?": "skill_a_", "skill:..": "skill___",
	} {
		if got := skillName(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

func TestAllThatIsWrongWithModulesIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		"agentpack/repo/agentpack.yaml": agentpackOf("skill|skill:a|modules/a", "skill|skill:b|modules/b",
			"skill|skill:gone|modules/gone", "prompt|prompt:odd|modules/odd",
			"prompt|prompt:con|modules/con", "skill|skill:fine|modules/fine"),
		"agentpack/repo/modules/a/SKILL.md": "# a\n", "agentpack/repo/modules/b/SKILL.md": "---\nname: b\n---\n",
		"agentpack/repo/modules/odd/a:b.md":    "x\n",
		"agentpack/repo/modules/con/con.md":    "x\n",
		"agentpack/repo/modules/fine/SKILL.md": "---\nname: x\ndescription: d\n---\n",
	})
	out := b.ask("plan", `{}`)
	if out.OK || len(out.Errors) != 1 || out.Errors[0].Code != "E_CONFIG_INVALID" {
		t.Fatalf("%+v", out)
	}
	problems, _ := out.Errors[0].Details["problems"].([]any)
	if len(problems) != 5 || !strings.HasPrefix(out.Errors[0].Message, "5 problems: ") {
		t.Errorf("%+v", out.Errors[0])
	}
	for _, want := range []string{"module skill:a: SKILL.md: it has no front matter",
		"skill:b: SKILL.md: its front matter has no description", "skill:gone", `prompt:odd would write "a:b.md"`,
		`prompt:con would write "con.md"`} {
		if !strings.Contains(fmt.Sprint(problems), want) {
			t.Errorf("%q is not said: %v", want, problems)
		}
	}
}

func TestALinkOutOfTheHomeSaysWhatToSet(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		"agentpack/repo/agentpack.yaml":     agentpackOf("skill|skill:a|modules/a"),
		"agentpack/repo/modules/a/SKILL.md": "---\nname: x\ndescription: d\n---\n", "dotfiles/codex/.keep": "",
		"dotfiles/claude/.keep": "",
	})
	for _, name := range []string{"codex", "claude"} {
		if err := os.Symlink(filepath.Join(b.dir, "dotfiles", name), filepath.Join(b.dir, "user", "."+name)); err != nil {
			t.Fatal(err)
		}
	}
	said := func(target string) string {
		out := b.ask("plan", `{"target":"`+target+`"}`)
		if out.OK {
			t.Fatalf("%+v", out)
		}
		return out.Errors[0].Message
	}
	if got := said("codex"); !strings.HasSuffix(got, "; set CODEX_HOME="+filepath.Join(b.dir, "dotfiles", "codex")) {
		t.Errorf("%s", got)
	}
	if got := said("claude_code"); !strings.Contains(got,
		".claude is a link to "+filepath.Join(b.dir, "dotfiles", "claude")) ||
		!strings.Contains(got, "put a folder in its place") {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprint(b.mustOK("doctor", `{"target":"codex"}`)); !strings.Contains(got, "set CODEX_HOME=") {
		t.Errorf("doctor: %s", got)
	}
	b.settings.CodexHome = filepath.Join(b.dir, "dotfiles", "codex")
	b.mustOK("plan", `{"target":"codex"}`)
}
