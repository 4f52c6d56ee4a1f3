package deploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
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

func setup(t testing.TB, files map[string]string) Setup {
	t.Helper()
	dir := t.TempDir()
	home := filepath.Join(dir, "agentpack")
	operationtest.WriteFiles(t, filepath.Join(home, "repo"), files)
	operationtest.WriteFiles(t, dir, map[string]string{"user/.keep": "", "project/.keep": ""})
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return Setup{
		Home: home, Places: Places{Home: filepath.Join(dir, "user"), Project: filepath.Join(dir, "project")},
		Machine: []string{"Box"},
		Origin:  func(context.Context, string) string { return "" },
		Git:     newGit(program, dir, home, []string{"PATH=" + os.Getenv("PATH")}),
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
		if err != nil {
			t.Fatal(err)
		}
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
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		target := outside
		if link != "m" {
			target = filepath.Join(outside, "AGENTS.md")
		}
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
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
