package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const configuration = `
version: 1
profiles:
  default: {include_tags: [base]}
  more: {include_tags: [base], include_modules: [skill:look], exclude_modules: [command:fix]}
targets:
  codex: {scope: both}
  claude_code: {scope: user, options: {write_user_skills: "yes"}}
  cursor: {}
  vscode: {scope: project}
modules:
  - {id: instructions:b, type: instructions, tags: [base], source: {local_path: {path: modules/b}}}
  - {id: instructions:a, type: instructions, tags: [base], source: {local_path: {path: modules/a}}}
  - {id: "skill:look", type: skill, tags: [extra], source: {local_path: {path: modules/look}}}
  - {id: "command:fix", type: command, tags: [base], targets: [claude_code], source: {local_path: {path: modules/fix.md}}}
  - {id: off, type: prompt, enabled: false, tags: [base], source: {local_path: {path: x}}}
  - {id: far, type: prompt, tags: [other], source: {git: {url: "https://example.org/x.git", subdir: a/b}}}
`

func TestConfigSelectsModules(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(operationtest.WriteFiles(t, t.TempDir(), map[string]string{configName: configuration}))
	must.Do(t, err)
	for profile, want := range map[string][]string{
		"default": {"command:fix", "instructions:a", "instructions:b"},
		"more":    {"instructions:a", "instructions:b", "skill:look"},
	} {
		modules, err := c.Select(profile)
		got := []string{}
		for _, m := range modules {
			got = append(got, m.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", profile, err, diff)
		}
	}
	if _, err := c.Select("none"); codeOf(err) != ConfigInvalid {
		t.Errorf("a profile that is not there: %v", err)
	}
	if targets, err := c.For("all"); err != nil || fmt.Sprint(targets) != "[claude_code codex cursor vscode]" {
		t.Errorf("%v, %v", targets, err)
	}
	for target, want := range map[string]Code{"jetbrains": TargetUnsupported, "codex": ""} {
		if _, err := c.For(target); codeOf(err) != want {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestConfigRefusals(t *testing.T) {
	t.Parallel()
	base := "version: 1\nprofiles: {default: {}}\n"
	module := func(source string) string {
		return base + "modules: [{id: m, type: prompt, source: " + source + "}]\n"
	}
	for text, want := range map[string]Code{
		"": ConfigInvalid, "# none\n": ConfigInvalid, base + "---\n" + base: ConfigInvalid, "version: 2\n": ConfigUnsupported,
		"version: 1\n": ConfigInvalid, "version: [\n": ConfigInvalid, base: "",
		base + "targets: {emacs: {}}\n": TargetUnsupported, base + "targets: {cursor: {scope: user}}\n": ConfigInvalid,
		base + "targets: {codex: {mode: links}}\n": ConfigInvalid,
		base + "targets: {codex: {scope: all}}\n":  ConfigInvalid, base + "unknown: 1\n": "",
		module("{}"): ConfigInvalid, module("{local_path: {path: x}, git: {url: 'https://e.org/x'}}"): ConfigInvalid,
		module("{local_path: {path: ../x}}"): ConfigInvalid,
		module("{local_path: {path: /x}}"):   ConfigInvalid, module("{local_path: {path: a/../../x}}"): ConfigInvalid,
		module("{local_path: {path: a/../x}}"):          "",
		module("{git: {url: '--upload-pack=touch x'}}"): ConfigInvalid,
		module("{git: {url: 'ext::sh -c touch'}}"):      ConfigInvalid, module("{git: {url: 'foo://x'}}"): ConfigInvalid,
		module("{git: {url: 'https://e.org/x', ref: -x}}"):      ConfigInvalid,
		module("{git: {url: 'https://e.org/x', ref: a..b}}"):    ConfigInvalid,
		module("{git: {url: 'https://e.org/x', subdir: ../y}}"): ConfigInvalid, module("{git: {url: 'git@e.org:x.git'}}"): "",
		base +
			"modules: [{id: m, type: what, source: {local_path: {path: x}}}]\n": ConfigInvalid,
		base +
			"modules: [{id: m, type: prompt, targets: [emacs], source: {local_path: {path: x}}}]\n": TargetUnsupported,
		base + "modules: [{id: m, type: prompt, source: {local_path: {path: x}}}, {id: m, type: prompt, source: " +
			"{local_path: {path: y}}}]\n": ConfigInvalid,
	} {
		_, err := LoadConfig(operationtest.WriteFiles(t, t.TempDir(), map[string]string{configName: text}))
		e := errorOf(err)
		if codeOf(err) != want || e != nil && (e.Details["reason_code"] == nil || e.Details["path"] == nil) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := LoadConfig(t.TempDir()); codeOf(err) != ConfigMissing {
		t.Errorf("no file: %v", err)
	}
}

func TestNamesOfModulesMachinesAndProjects(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		fsKey("instructions:a"): "instructions_a--" + fileset.Hash([]byte("instructions:a"))[:10],
		fsKey(""):               "module--e3b0c44298", fsKey(strings.Repeat("é", 70))[:66]: strings.Repeat("_", 64) + "--",
		machineID("", " My Laptop.local "): "my-laptop-local", machineID("", "--"): "unknown",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	want := projectID("https://example.org/Joe/Repo.git", "/x")
	for _, origin := range []string{"http://example.org/joe/repo", "git@example.org:Joe/Repo.git",
		"https://example.org/Joe/Repo/"} {
		if got := projectID(origin, "/y"); got != want {
			t.Errorf("%s: %s, want %s", origin, got, want)
		}
	}
	if projectID("", "/x") == projectID("", "/y") {
		t.Error("two projects without a remote have one name")
	}
}

// fakePatch replaces what the patch's - lines say by what its + lines say.
func fakePatch(_ context.Context, _, before, patch string) (string, string, error) {
	var from, to string
	for _, line := range strings.Split(patch, "\n") {
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
		case strings.HasPrefix(line, "-"):
			from += line[1:] + "\n"
		case strings.HasPrefix(line, "+"):
			to += line[1:] + "\n"
		}
	}
	if !strings.Contains(before, from) {
		return "", "patch does not apply", nil
	}
	return strings.Replace(before, from, to, 1), "", nil
}

func TestOverlaysFromLowToHigh(t *testing.T) {
	t.Parallel()
	m := Module{ID: "skill:look", Type: Skill}
	key := fsKey(m.ID)
	patch := "--- a/SKILL.md\n+++ b/SKILL.md\n@@ -1 +1 @@\n-global\n+patched\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string // of SKILL.md
		code  Code
	}{
		"none":   {nil, "upstream\n", ""},
		"global": {map[string]string{"overlays/" + key + "/SKILL.md": "global\n"}, "global\n", ""},
		"machine": {map[string]string{"overlays/" + key + "/SKILL.md": "global\n", "overlays/machines/box/" + key +
			"/SKILL.md": "machine\n"}, "machine\n", ""},
		"another machine": {map[string]string{"overlays/machines/other/" + key + "/SKILL.md": "machine\n"}, "upstream\n", ""},
		"project": {map[string]string{"overlays/machines/box/" + key + "/SKILL.md": "machine\n",
			"projects/p/overlays/" + key + "/SKILL.md": "project\n"}, "project\n", ""},
		"a patch over files": {map[string]string{
			"overlays/" + key + "/SKILL.md": "global\n", "overlays/machines/box/" + key +
				"/.agentpack/overlay.json": `{"overlay_kind":"patch"}`,
			"overlays/machines/box/" + key + "/.agentpack/patches/SKILL.md.patch": patch,
		}, "patched\n", ""},
		"a patch that does not apply": {map[string]string{"overlays/" + key +
			"/.agentpack/overlay.json": `{"overlay_kind":"patch"}`,
			"overlays/" + key + "/.agentpack/patches/SKILL.md.patch": patch}, "", OverlayPatchFailed},
		"both kinds": {map[string]string{"overlays/" + key +
			"/.agentpack/overlay.json": `{"overlay_kind":"patch"}`, "overlays/" + key + "/SKILL.md": "x"}, "", ConfigInvalid},
		"patches without the kind": {map[string]string{"overlays/" + key + "/.agentpack/patches/SKILL.md.patch": patch},
			"", ConfigInvalid},
		"another kind": {map[string]string{"overlays/" + key +
			"/.agentpack/overlay.json": `{"overlay_kind":"link"}`}, "", ConfigInvalid},
		"broken JSON": {map[string]string{"overlays/" + key + "/.agentpack/overlay.json": `{`}, "",
			ConfigInvalid},
		"a patch of another file": {map[string]string{"overlays/" + key +
			"/.agentpack/overlay.json": `{"overlay_kind":"patch"}`,
			"overlays/" + key + "/.agentpack/patches/other.md.patch": patch}, "", ConfigInvalid},
		"a patch that leaves": {map[string]string{"overlays/" + key +
			"/.agentpack/overlay.json": `{"overlay_kind":"patch"}`,
			"overlays/" + key + "/.agentpack/patches/x.patch": "--- a/../x\n+++ b/../x\n"}, "", ConfigInvalid},
		"a patch that adds": {map[string]string{"overlays/" + key +
			"/.agentpack/overlay.json": `{"overlay_kind":"patch"}`,
			"overlays/" + key + "/.agentpack/patches/new.md.patch": "--- /dev/null\n+++ b/new.md\n@@ -0,0 +1 @@\n+x\n"}, "",
			ConfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := files.OpenDir(operationtest.WriteFiles(t, t.TempDir(), c.files))
			must.Do(t, err)
			defer func() { _ = root.Close() }()
			got, err := overlaid(t.Context(), root, m, fileset.Tree{"SKILL.md": {Content: fileset.Bytes([]byte("upstream\n"))}},
				levelsIn(root, "box", "p"), fakePatch)
			if codeOf(err) != c.code || string(bytesOf(top(got)["SKILL.md"].Content)) != c.want {
				t.Errorf("%q, %v", bytesOf(top(got)["SKILL.md"].Content), err)
			}
		})
	}
}

// top returns a module's files with all layers.
func top(layers []layer) fileset.Tree {
	if len(layers) == 0 {
		return nil
	}
	return layers[len(layers)-1].tree
}

func desired(t *testing.T, targets map[fileset.TargetName]TargetConf, modules ...rendered) map[string]string {
	t.Helper()
	d := fileset.NewDesired(fileset.Agentpack, "repo", "/p")
	for name, conf := range targets {
		must.Do(t, conf.normalize(name))
		must.Do(t, render(d, name, conf, modules, Places{Home: "/home/u", Project: "/p"}, nil, &broken{}))
	}
	out := map[string]string{}
	for key, f := range d.Files {
		out[key.Path] = string(bytesOf(f.Content))
	}
	return out
}

func TestRenderEachTarget(t *testing.T) {
	t.Parallel()
	module := func(id string, of ModuleType, files ...string) rendered {
		m := rendered{Module: Module{ID: id, Type: of}, tree: fileset.Tree{}}
		for i := 0; i+1 < len(files); i += 2 {
			m.tree[files[i]] = fileset.TreeFile{Content: fileset.Bytes([]byte(files[i+1]))}
		}
		return m
	}
	modules := []rendered{
		module("c", Command, "fix.md", "fix"), module("i:a", Instructions, "AGENTS.md", "A"),
		module("i:b", Instructions, "AGENTS.md", "B\n", "other.md", "x"),
		module("p", Prompt, "ask.md", "ask"), module("skill:look", Skill, "SKILL.md", "look", "bin/run", "run"),
	}
	both := "<!-- agentpack:module=i:a -->\nA\n<!-- /agentpack -->\n\n---\n\n<!-- agentpack:module=i:b -->\nB\n<!-- " +
		"/agentpack -->"
	rule := func(id, text string) string {
		return "---\ndescription: \"agentpack: " + id + "\"\nglobs: []\nalwaysApply: true\n---\n\n" + text
	}
	for name, c := range map[string]struct {
		target fileset.TargetName
		conf   TargetConf
		want   map[string]string
	}{
		"codex": {Codex, TargetConf{Scope: "both"}, map[string]string{
			"/home/u/.codex/AGENTS.md": both, "/home/u/.codex/prompts/ask.md": "ask",
			"/home/u/.codex/skills/look/SKILL.md": "look", "/home/u/.codex/skills/look/bin/run": "run",
			"/p/AGENTS.md": both, "/p/.codex/skills/look/SKILL.md": "look", "/p/.codex/skills/look/bin/run": "run",
		}},
		"codex elsewhere": {Codex, TargetConf{Scope: "user",
			Options: map[string]any{"codex_home": "~/c", "write_user_skills": "no", "write_agents_global": false}},
			map[string]string{"/home/u/c/prompts/ask.md": "ask"}},
		"shared skills": {Codex, TargetConf{Scope: "project", Options: map[string]any{"write_shared_skills": true,
			"write_repo_skills": false, "write_agents_repo_root": false}},
			map[string]string{"/p/.agents/skills/look/SKILL.md": "look", "/p/.agents/skills/look/bin/run": "run"}},
		"claude": {ClaudeCode, TargetConf{Scope: "both"},
			map[string]string{"/home/u/.claude/commands/fix.md": "fix", "/p/.claude/commands/fix.md": "fix"}},
		"claude's skills": {ClaudeCode, TargetConf{Options: map[string]any{"write_repo_skills": 1, "write_repo_commands": 0}},
			map[string]string{"/p/.claude/skills/look/SKILL.md": "look", "/p/.claude/skills/look/bin/run": "run"}},
		"cursor": {Cursor, TargetConf{},
			map[string]string{"/p/.cursor/rules/" + fsKey("i:a") + ".mdc": rule("i:a", "A\n"),
				"/p/.cursor/rules/" + fsKey("i:b") + ".mdc": rule("i:b", "B\n")}},
		"vscode": {VSCode, TargetConf{}, map[string]string{"/p/.github/copilot-instructions.md": both,
			"/p/.github/prompts/ask.prompt.md": "ask"}},
	} {
		operationtest.Same(t, name, c.want, desired(t, map[fileset.TargetName]TargetConf{c.target: c.conf}, modules...))
	}
	d := fileset.NewDesired(fileset.Agentpack, "repo", "/p")
	conf := TargetConf{Scope: "project"}
	err := render(d, ClaudeCode, conf, []rendered{module("c1", Command, "x.md", "1"), module("c2", Command, "x.md", "1")},
		Places{Project: "/p"}, nil, &broken{})
	if f := d.Files[fileset.FileKey{Target: ClaudeCode, Path: "/p/.claude/commands/x.md"}]; err != nil ||
		fmt.Sprint(f.Modules) != "[c1 c2]" {
		t.Errorf("the same bytes of two modules: %+v, %v", f, err)
	}
	err = render(d, ClaudeCode, conf, []rendered{module("c3", Command, "x.md", "2")}, Places{Project: "/p"}, nil,
		&broken{})
	e := errorOf(err)
	if e == nil || e.Code != DesiredStateConflict || e.Details["path"] != "/p/.claude/commands/x.md" {
		t.Errorf("other bytes: %v", err)
	}
}

func TestModulesAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of    ModuleType
		files map[string]string
		ok    bool
	}{
		"instructions":   {Instructions, map[string]string{"AGENTS.md": ""}, true},
		"no AGENTS.md":   {Instructions, map[string]string{"agents.md": ""}, false},
		"skill":          {Skill, map[string]string{"SKILL.md": "---\nname: n\ndescription: d\n---\nx"}, true},
		"blank":          {Skill, map[string]string{"SKILL.md": "---\nname: ' '\ndescription: d\n---\n"}, false},
		"no header":      {Skill, map[string]string{"SKILL.md": "# n"}, false},
		"number":         {Skill, map[string]string{"SKILL.md": "---\nname: 1\ndescription: d\n---\n"}, false},
		"prompt":         {Prompt, map[string]string{"a.md": ""}, true},
		"two files":      {Prompt, map[string]string{"a.md": "", "b.md": ""}, false},
		"no md":          {Prompt, map[string]string{"a.txt": ""}, false},
		"command":        {Command, map[string]string{"a.md": "---\ndescription: d\n---\n"}, true},
		"no description": {Command, map[string]string{"a.md": "x"}, false},
		"shell": {Command,
			map[string]string{"a.md": "---\ndescription: d\nallowed-tools: [Read, 'Bash(git:*)']\n---\n!`git status`"}, true},
		"shell that is not allowed": {Command, map[string]string{"a.md": "---\ndescription: d\n---\n!bash ls"}, false},
	} {
		tree := fileset.Tree{}
		for p, text := range c.files {
			tree[p] = fileset.TreeFile{Content: fileset.Bytes([]byte(text))}
		}
		if err := checkModule(Module{ID: "m", Type: c.of}, tree); (err == nil) != c.ok || err != nil &&
			codeOf(err) != ConfigInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// codeOf is the code of an error; "" for nil and for errors of others.
func codeOf(err error) Code {
	if e := errorOf(err); e != nil {
		return e.Code
	}
	return ""
}

func bytesOf(c fileset.Content) []byte {
	b, _ := c.Bytes()
	return b
}

// TestOneSkillForTwoTargets deploys a skill for Codex's folder of the user and for Claude Code's of the project, twice,
// and rolls back: both have what they had.
func TestOneSkillForTwoTargets(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in of git is a script")
	}
	url, _ := upstream(t)
	s := setup(t, gitModule(url, ", ref: old"))
	log := filepath.Join(t.TempDir(), "asked")
	script := "#!/bin/sh\ncase \" $* \" in *' --depth=1 '*) echo shallow >> '" + log +
		"'; echo 'fatal: no such remote ref' >&2; exit 128;; esac\nexec '" + s.Git.git.Program + "' \"$@\"\n"
	s.Git.git.Program = filepath.Join(operationtest.WriteExecutables(t, t.TempDir(), map[string]string{"git": script}),
		"git")
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
	t.Parallel()
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

// TestMain lets the tests start this program as another process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == processtree.ReaperCommand {
		os.Exit(processtree.Reap())
	}
	limitedIfAsked()
	if url := os.Getenv("DEPLOY_ASK_UNTIL_KILLED"); url != "" {
		fmt.Fprintln(os.Stderr, askUntilKilled(url))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// askUntilKilled is a process that asks a server; see TestNoGitOutlivesAKilledServer.
func askUntilKilled(url string) error {
	program, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	g := newGit(program, "/nonexistent", "/nonexistent", []string{"PATH=" + os.Getenv("PATH")})
	g.git.Reaped, g.limits.ask = true, time.Hour
	_, err = g.resolve(context.Background(), (&GitSource{URL: url, Ref: "main"}).operators())
	return err
}

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
			if p := m.Source.LocalPath; p != nil && fileset.Leaves(p.Path) != "" {
				t.Errorf("the path %q leaves the repository", p.Path)
			}
			if g := m.Source.Git; g != nil && (strings.HasPrefix(g.URL, "-") || strings.HasPrefix(g.Ref, "-") ||
				g.Subdir != "" && fileset.Leaves(g.Subdir) != "") {
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
		operationtest.Judged(t, name, FileKind().Validate(c.path, "", c.content), c.says, c.line, 0)
	}
}

// A name that git or a file system treats as .git would affect anyone's git in the target.
func TestAModuleHasNothingThatGitTakesForItsOwnFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".GIT", "a\u202eb"} {
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
			if _, _, err := s.Apply(t.Context(), Request{}, fileset.Approval{}, false); codeOf(err) != ConfigInvalid {
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
