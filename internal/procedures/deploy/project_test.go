package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// gitProgram is where git is.
func gitProgram(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("git")
	must.Do(t, err)
	return program
}

// gitEnv is the environment of a git that a service starts.
func gitEnv() []string { return []string{"PATH=" + os.Getenv("PATH")} }

func setup(t testing.TB, files map[string]string) Setup {
	t.Helper()
	dir := t.TempDir()
	home := filepath.Join(dir, "agentpack")
	operationtest.WriteFiles(t, filepath.Join(home, "repo"), files)
	operationtest.WriteFiles(t, dir, map[string]string{"user/.keep": "", "project/.keep": ""})
	return Setup{
		Home: home, Places: Places{Home: filepath.Join(dir, "user"), Project: filepath.Join(dir, "project")},
		Machine: []string{"Box"},
		Origin:  func(context.Context, string) string { return "" },
		Git:     newGit(gitProgram(t), dir, home, gitEnv()),
	}
}

// upstream is a repository with a prompt, a branch and tags, and the commits of main, oldest first.
func upstream(t testing.TB) (url string, commits []string) {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	for _, text := range []string{"one", "two"} {
		operationtest.WriteFiles(t, dir, map[string]string{"prompts/ask.md": text, "other/x.md": "x"})
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", text)
		commits = append(commits, git(t, dir, "rev-parse", "HEAD"))
	}
	git(t, dir, "tag", "-a", "-m", "v1", "v1", commits[0])
	git(t, dir, "branch", "old", commits[0])
	return "file://" + dir, commits
}

func gitModule(url, more string) map[string]string {
	return map[string]string{configName: "version: 1\nprofiles: {default: {include_modules: [p]}}\ntargets: {vscode: " +
		"{}}\nmodules: [{id: p, type: prompt, source: {git: {url: '" + url + "', subdir: prompts" + more + "}}}]\n"}
}

func desiredTexts(t testing.TB, s Setup) (map[string]string, error) {
	t.Helper()
	d, err := s.Desire(t.Context(), Request{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for key, f := range d.Files {
		rel, err := filepath.Rel(s.Places.Project, key.Path)
		must.Do(t, err)
		out[rel] = string(bytesOf(f.Content))
	}
	return out, nil
}

func TestModulesOfOtherRepositories(t *testing.T) {
	t.Parallel()
	url, commits := upstream(t)
	for more, want := range map[string]string{"": "two", ", ref: main": "two", ", ref: old": "one", ", ref: v1": "one",
		", ref: " + commits[0]: "one"} {
		s := setup(t, gitModule(url, more))
		for range 2 {
			got, err := desiredTexts(t, s)
			if diff := cmp.Diff(map[string]string{".github/prompts/ask.prompt.md": want}, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", more, err, diff)
			}
		}
	}
	locked := gitModule(url, "")
	locked[lockName] = `{"version":1,"modules":[{"id":"p","type":"prompt","resolved_source":{"git":{"url":"` + url +
		`","commit":"` + commits[0] + `","subdir":"prompts"}}}]}`
	if got, err := desiredTexts(t, setup(t, locked)); err != nil || got[".github/prompts/ask.prompt.md"] != "one" {
		t.Errorf("locked: %v, %v", got, err)
	}
	for more, want := range map[string]Code{", ref: gone": GitFailed, ", subdir: gone": ConfigInvalid} {
		files := gitModule(url, more)
		if strings.Contains(more, "subdir") {
			files = gitModule(strings.Replace(url, "file://", "file:///gone", 1), "")
			want = GitFailed
		}
		if _, err := desiredTexts(t, setup(t, files)); codeOf(err) != want {
			t.Errorf("%s: %v", more, err)
		}
	}
	for text, want := range map[string]Code{"{": LockfileInvalid, `{"version":2}`: LockfileUnsupported} {
		locked[lockName] = text
		if _, err := desiredTexts(t, setup(t, locked)); codeOf(err) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestARealPatchIsApplied(t *testing.T) {
	t.Parallel()
	key := fsKey("i")
	s := setup(t, map[string]string{
		configName: "version: 1\nprofiles: {default: {include_modules: [i]}}\ntargets: {codex: {scope: " +
			"project}}\nmodules: [{id: i, type: instructions, source: {local_path: {path: m}}}]\n",
		"m/AGENTS.md": "one\ntwo\nthree\n",
		"overlays/" + key + "/.agentpack/overlay.json": `{"overlay_kind":"patch"}`,
		"overlays/" + key +
			"/.agentpack/patches/AGENTS.md.patch": "--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
	})
	got, err := desiredTexts(t, s)
	if diff := cmp.Diff(map[string]string{"AGENTS.md": "one\n2\nthree\n"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	operationtest.WriteFiles(t, filepath.Join(s.Home, "repo"), map[string]string{"m/AGENTS.md": "quite\nanother\n"})
	_, err = desiredTexts(t, s)
	if e := errorOf(err); e == nil || e.Code != OverlayPatchFailed || e.Details["stderr"] == "" {
		t.Errorf("a patch that does not apply: %v", err)
	}
}

func TestALinkOutOfTheRepositoryIsNotFollowed(t *testing.T) {
	t.Parallel()
	outside := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"AGENTS.md": "secret"})
	s := setup(t, map[string]string{
		configName: "version: 1\nprofiles: {default: {include_modules: [i]}}\ntargets: {codex: {scope: project}}\nmodules: " +
			"[{id: i, type: instructions, source: {local_path: {path: m}}}]\n",
	})
	for _, link := range []string{"m", "m/AGENTS.md"} {
		name := filepath.Join(s.Home, "repo", filepath.FromSlash(link))
		_ = os.RemoveAll(filepath.Join(s.Home, "repo", "m"))
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		target := outside
		if link != "m" {
			target = filepath.Join(outside, "AGENTS.md")
		}
		must.Do(t, os.Symlink(target, name))
		if got, err := desiredTexts(t, s); codeOf(err) != ConfigInvalid {
			t.Errorf("%s: %v, %v", link, got, err)
		}
	}
}

func TestGitThatIsMissing(t *testing.T) {
	t.Parallel()
	s := setup(t, map[string]string{
		configName: "version: 1\nprofiles: {default: {include_modules: [far]}, near: {}}\ntargets: {codex: {scope: " +
			"project}}\n" +
			"modules: [{id: far, type: instructions, source: {git: {url: 'https://example.org/x.git'}}}]\n",
	})
	s.Git = newGit(filepath.Join(t.TempDir(), "no-git"), s.Places.Home, s.Home, nil)
	if _, err := s.Desire(t.Context(), Request{}); codeOf(err) != GitFailed {
		t.Errorf("%v", err)
	}
	if _, err := s.Desire(t.Context(), Request{Profile: "near"}); err != nil {
		t.Errorf("without a module that needs it: %v", err)
	}
}

// private is a repository on this machine that the operator can read, with one prompt. Its address and its commit.
func (b *bench) private(name string) (url, commit string) {
	b.Helper()
	dir, commit := b.repository(name, map[string]string{"ask.md": "the secret of " + name + "\n"})
	return "file://" + filepath.ToSlash(dir), commit
}

// repository makes a repository of the files, and returns its folder and its commit.
func (b *bench) repository(name string, files map[string]string) (dir, commit string) {
	b.Helper()
	dir = operationtest.WriteFiles(b, filepath.Join(b.dir, name), files)
	git(b, dir, "init", "-q", "-b", "main")
	git(b, dir, "add", "-A")
	git(b, dir, "commit", "-q", "-m", "x")
	return dir, git(b, dir, "rev-parse", "HEAD")
}

func (b *bench) allow(origins ...string) {
	list := sources.List{}
	for _, origin := range origins {
		o, err := sources.OriginOf(origin)
		must.Do(b, err)
		list = append(list, sources.Source{Origin: o})
	}
	b.settings.Sources = func() sources.List { return list }
}

// fetched are the entries of the cache, whole or not.
func (b *bench) fetched() []string {
	b.Helper()
	found, err := filepath.Glob(filepath.Join(b.dir, "agentpack", "cache", "git", "*", "*"))
	must.Do(b, err)
	return found
}

func moduleOf(url, more string) string {
	return "version: 1\nprofiles: {default: {include_modules: [p]}}\ntargets: {vscode: {}}\nmodules: [{id: p, type: " +
		"prompt, source: {git: {url: '" + url + "'" + more + "}}}]\n"
}

func (b *bench) callers() map[string]record.Door {
	return map[string]record.Door{"agent over MCP": record.DoorMCP, "program over REST": record.DoorREST}
}

// An agent's own configuration is neither read nor followed, whatever it names; the refusal says how a person allows
// it, and is recorded.
func TestAnAgentReadsNoConfigurationOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	url, _ := b.private("secret")
	operationtest.WriteFiles(t, b.dir, map[string]string{"project/mine/" + configName: moduleOf(url, "")})
	must.Do(t, os.Symlink(filepath.Join(b.dir, "project", "mine"), filepath.Join(b.dir, "project", "link")))
	own := filepath.Join(b.dir, "project", "mine")
	for name, door := range b.callers() {
		for _, repo := range []string{own, "mine", "link", own + "/../mine",
			filepath.Join(b.dir, "agentpack", "repo", "..", "..", "project", "mine"), "/nowhere"} {
			for tool, more := range map[string]string{ToolPlan: "", ToolDiff: "", ToolStatus: "", ToolDoctor: "",
				ToolApply: `,"yes":true`} {
				b.door, b.rows = door, nil
				arguments, _ := json.Marshal(repo)
				out := b.ask(tool, `{"repo":`+string(arguments)+more+`}`)
				text, _ := json.Marshal(out)
				if out.OK || out.Errors[0].Code != SourceNotAllowed || strings.Contains(string(text), "secret of") ||
					!strings.Contains(out.Errors[0].Message, "claudeops sources allow /") {
					t.Errorf("%s, %s, %s: %s", name, tool, repo, text)
				}
				if len(b.rows) != 1 || b.rows[0].Outcome != record.OutcomeRefused {
					t.Errorf("%s, %s, %s: the audit: %+v", name, tool, repo, b.rows)
				}
			}
		}
	}
	if list := b.fetched(); len(list) > 0 {
		t.Errorf("fetched: %v", list)
	}
	if out := b.ask(ToolPlan, `{"repo":"`+filepath.Join(b.dir, "agentpack", "repo")+`"}`); !out.OK {
		t.Errorf("the operator's own: %+v", out.Errors)
	}
}

// A configuration that the operator did not write chooses among the sources that the operator admitted; this holds for
// persons, too.
func TestAProjectsConfigurationChoosesAmongSources(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	url, _ := b.private("secret")
	dir := filepath.Join(b.dir, "project", "mine")
	must.Do(t, os.Symlink(filepath.Join(b.dir, "secret"), filepath.Join(b.dir, "project", "way")))
	plan := func(address, more string) Envelope[map[string]any] {
		t.Helper()
		b.rows = nil
		operationtest.WriteFiles(t, dir, map[string]string{configName: moduleOf(address, more)})
		return b.ask(ToolDiff, `{"repo":"mine"}`)
	}
	link := "file://" + filepath.ToSlash(filepath.Join(b.dir, "project", "way"))
	foreign := []string{url, filepath.Join(b.dir, "secret"), "../secret", "secret", link, "https://git.invalid/x",
		"http://git.invalid/x", "ssh://git@git.invalid/x", "git@git.invalid:x", "git://git.invalid/x"}
	b.door = record.DoorCLI
	for _, address := range foreign {
		if out := plan(address, ""); out.OK || out.Errors[0].Code != SourceNotAllowed ||
			!strings.Contains(out.Errors[0].Message, "not used") {
			t.Errorf("%s: %+v", address, out.Errors)
		} else if address == url && !strings.Contains(out.Errors[0].Message, "claudeops sources allow "+url) {
			t.Errorf("%s", out.Errors[0].Message)
		}
	}
	b.allow(filepath.Join(b.dir, "project"))
	if out := plan(link, ""); out.OK || out.Errors[0].Code != SourceNotAllowed {
		t.Errorf("through a link out of an admitted folder: %+v", out)
	}
	b.door = record.DoorMCP
	if out := plan(url, ""); out.OK || out.Errors[0].Code != SourceNotAllowed {
		t.Errorf("an agent, in an admitted folder: %+v", out)
	}
	if list := b.fetched(); len(list) > 0 {
		t.Errorf("fetched: %v", list)
	}
	b.allow(filepath.Join(b.dir, "project"), url)
	text, _ := json.Marshal(plan(url, ""))
	if !strings.Contains(string(text), "secret of") || len(b.fetched()) != 1 {
		t.Errorf("an admitted source: %s", text)
	}
	if len(b.rows) != 1 || b.rows[0].Action != ToolDiff || b.rows[0].Outcome != record.OutcomeDone ||
		!strings.Contains(b.rows[0].Message, "fetched from "+url) {
		t.Errorf("the audit: %+v", b.rows)
	}
	b.allow(filepath.Join(b.dir, "project")) // and no more
	if out := plan(url, ""); out.OK || out.Errors[0].Code != SourceNotAllowed {
		t.Errorf("what was fetched before is read: %+v", out)
	}
}

// Only the operator's own configuration says where Codex's folder is.
func TestAProjectsConfigurationNamesNoFolderOfCodex(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"project/mine/" +
		configName: "version: 1\nprofiles: {default: {}}\ntargets: {codex: {scope: user, options: {codex_home: " +
		"/elsewhere/codex}}}\n"})
	b.door = record.DoorCLI
	if out := b.ask(ToolPlan, `{"repo":"mine"}`); out.OK || out.Errors[0].Code != ConfigInvalid {
		t.Errorf("%+v", out)
	}
}

// What the operator's own configuration names is used; each reading from outside has a row.
func TestEveryFetchIsInTheAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	url, commit := b.private("secret")
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + configName: moduleOf(url, "")})
	for _, tool := range []string{ToolPlan, ToolDiff, ToolStatus, ToolDoctor} {
		b.rows = nil
		b.mustOK(tool, `{}`)
		if len(b.rows) != 1 || b.rows[0].Message != "fetched from "+url {
			t.Errorf("%s: %+v", tool, b.rows)
		}
	}
	b.rows = nil
	b.mustOK(ToolApply, `{"yes":true}`)
	if len(b.rows) != 1 || !strings.Contains(b.rows[0].Message, "1 change; fetched from "+url) {
		t.Errorf("%+v", b.rows)
	}
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" +
		configName: moduleOf("file://joe:token@/nowhere", "")})
	b.rows = nil
	if out := b.ask(ToolPlan, `{}`); out.OK || len(b.rows) != 1 || b.rows[0].Outcome == record.OutcomeDone ||
		!strings.Contains(b.rows[0].Message, "fetched from file:///nowhere") {
		t.Errorf("a fetch that fails: %+v, %+v", out, b.rows)
	}
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + configName: moduleOf(url, ", ref: "+commit)})
	b.rows = nil
	if b.mustOK(ToolPlan, `{}`); len(b.rows) != 0 {
		t.Errorf("nothing was fetched: %+v", b.rows)
	}
}

// A commit is a part of paths and of git's arguments: what is none is refused, wherever it stands.
func TestALockFileNamesCommitsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	url, _ := b.private("secret")
	outside := filepath.Join(b.dir, "written")
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + configName: moduleOf(url, ""),
		"elsewhere/ask.md": "another folder\n"})
	for _, commit := range []string{"../../../../elsewhere", filepath.Join(b.dir, "elsewhere"), "--output=" + outside,
		"main", "", "abc", strings.Repeat("A", 40)} {
		text, _ := json.Marshal(map[string]any{"version": 1,
			"modules": []any{map[string]any{"id": "p",
				"resolved_source": map[string]any{"git": map[string]any{"url": url, "commit": commit}}}}})
		operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + lockName: string(text)})
		out := b.ask(ToolDiff, `{}`)
		if said, _ := json.Marshal(out); out.OK || out.Errors[0].Code != LockfileInvalid ||
			strings.Contains(string(said), "another folder") {
			t.Errorf("%q: %s", commit, said)
		}
	}
	if fileset.Exists(outside) || len(b.fetched()) > 0 {
		t.Errorf("something was written: %v", b.fetched())
	}
}

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
		"skill:a?": "skill_a_", "skill:..": "skill___", "skill:../../x": "skill_______x", "skill:/x": "skill__x",
		"look": "look",
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
		must.Do(t, os.Symlink(filepath.Join(b.dir, "dotfiles", name), filepath.Join(b.dir, "user", "."+name)))
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
