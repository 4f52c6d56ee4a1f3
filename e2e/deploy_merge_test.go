//go:build e2e && linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A person sees on the pull request what it would change on this machine, merges it, and finds it in place, or waiting
// for them.
func TestAMergeIsForetoldAndDeployed(t *testing.T) {
	axe, err := os.ReadFile(installed(t, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	d := newDashboard(t, "CLAUDEOPS_TOOLSETS=pr,deploy", "CLAUDEOPS_DEPLOY_AFTER_MERGE=true")
	w := d.world
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = dir, append(w.environment(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	bare := w.repo
	seed := filepath.Join(t.TempDir(), "seed")
	git(w.home, "clone", "-q", bare, seed)
	if err := os.WriteFile(filepath.Join(seed, "agentpack.yaml"),
		[]byte("version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {codex: {scope: user}}\n"+
			"modules: [{id: ask, type: prompt, tags: [x], source: {local_path: {path: checks/ask.md}}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(seed, "add", "-A")
	git(seed, "commit", "-q", "-m", "x")
	git(seed, "push", "-q", "origin", "HEAD:main")
	w.project(t, map[string]string{".agentpack/.keep": "", ".codex/prompts/ask.md": "a person's\n"})
	git(w.home, "clone", "-q", bare, filepath.Join(w.home, ".agentpack", "repo"))
	w.project(t, map[string]string{"ask.md": "# Ask\n\nAsk before you touch the cellar host.\n"})
	got := run(t, program{path: claudeops(t), dir: w.home, env: w.environment(), args: []string{
		"--tier", "2", "pr", "create", "--repo", "demo/home-cluster", "--title", "Ask first", "--body", "why", "--create",
		"checks/ask.md=" + filepath.Join(w.home, "ask.md")}})
	if got.code != 0 {
		t.Fatalf("%s%s", got.stdout, got.stderr)
	}
	d.run(chromedp.EmulateViewport(1200, 900), chromedp.Navigate(d.url+"/pulls/local/demo/home-cluster/1"),
		chromedp.WaitVisible(`#deployment table`))
	text := d.value(`document.querySelector("#deployment").innerText`).(string)
	for _, part := range []string{"create 0 files, update 1 and delete 0", "ask.md", "adopt"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not say %q: %s", part, text)
		}
	}
	d.examine("a pull request of a deploy repository", string(axe))
	if text, err := os.ReadFile(filepath.Join(w.home, ".codex", "prompts", "ask.md")); err != nil ||
		string(text) != "a person's\n" {
		t.Errorf("looking has changed it: %q, %v", text, err)
	}
	got = run(t, program{path: claudeops(t), dir: w.home, env: w.environment(),
		args: []string{"review", "merge", "1", "--repo", "demo/home-cluster"}})
	if got.code != 0 {
		t.Fatalf("%s%s", got.stdout, got.stderr)
	}
	d.loads("/", `document.body.innerText.includes("is merged and not deployed")`)
	d.run(chromedp.Navigate(d.url+"/deployments"), chromedp.WaitVisible(`#waiting`))
	d.examine("a merge that waits", string(axe))
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"], w.vars["CLAUDEOPS_TIER"] = "pr,deploy", "true", "3"
	w.project(t, map[string]string{"work/.keep": ""})
	w.deploys(t, "apply", "--yes", "--adopt")
	d.loads("/", `!document.body.innerText.includes("is merged and not deployed")`)
	if text, err := os.ReadFile(filepath.Join(w.home, ".codex", "prompts", "ask.md")); err != nil ||
		!strings.Contains(string(text), "the cellar host") {
		t.Errorf("%q, %v", text, err)
	}
}
