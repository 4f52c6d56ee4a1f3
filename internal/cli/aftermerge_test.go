package cli_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

const proceduresOfCodex = "version: 1\nprofiles: {default: {include_tags: [base]}}\ntargets: {codex: {scope: user}}\n" +
	"modules: [{id: ask, type: prompt, tags: [base], source: {local_path: {path: checks/ask.md}}}]\n"

// TestAMergeAtAForgeIsDeployed has a forge without git behind it; its address leads to a bare repository of the same
// name.
func TestAMergeAtAForgeIsDeployed(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"github", "gitea"} {
		t.Run(source, func(t *testing.T) {
			f := newForged(t, source)
			dir := t.TempDir()
			bare, work := filepath.Join(dir, f.repo.Owner, f.repo.Name+".git"), filepath.Join(dir, "work")
			agentpack, prompts := filepath.Join(dir, "agentpack"), filepath.Join(f.env["HOME"], ".codex", "prompts")
			land := func(text string) {
				t.Helper()
				operationtest.WriteFiles(t, work, map[string]string{"agentpack.yaml": proceduresOfCodex, "checks/ask.md": text})
				runGit(t, work, "add", "-A")
				runGit(t, work, "commit", "-q", "-m", "x")
				runGit(t, work, "push", "-q", bare, "HEAD:main")
			}
			operationtest.WriteFiles(t, dir, map[string]string{"work/.keep": "", "agentpack/.keep": ""})
			runGit(t, dir, "init", "-q", "--bare", "-b", "main", bare)
			runGit(t, work, "init", "-q", "-b", "main")
			land("one")
			runGit(t, dir, "clone", "-q", bare, filepath.Join(agentpack, "repo"))
			f.env["CLAUDEOPS_TOOLSETS"], f.env["AGENTPACK_HOME"] = "pr,deploy", agentpack

			merge := func(title string, number int, text string) {
				t.Helper()
				f.propose(title)
				land(text)
				f.people.Merge(number)
				if status := f.hear(title, "pull_request", "closed", number); status != 202 {
					t.Errorf("status %d", status)
				}
				if got := <-f.told; !strings.HasPrefix(got, "merged ") {
					t.Errorf("people were told: %s", got)
				}
			}
			deployed := func(want string) {
				t.Helper()
				if text, err := os.ReadFile(filepath.Join(prompts, "ask.md")); string(text) != want {
					t.Errorf("deployed is %q, %v; want %q", text, err, want)
				}
			}
			f.serve() // off by default
			merge("inodes", 1, "two")
			f.stop()
			deployed("")

			f.env["CLAUDEOPS_DEPLOY_AFTER_MERGE"] = "true"
			operationtest.WriteFiles(t, prompts, map[string]string{"ask.md": "a person's"})
			f.serve()
			f.noted(agentpack)
			merge("memory", 2, "three")
			if got := <-f.told; got != "deploy_waits #2 by " {
				t.Errorf("people were told: %s", got)
			}
			deployed("a person's")
			if err := os.Remove(filepath.Join(prompts, "ask.md")); err != nil {
				t.Fatal(err)
			}
			merge("disk", 3, "four")
			if got := <-f.told; got != "deployed #3 by " {
				t.Errorf("people were told: %s", got)
			}
			deployed("four")
			f.stop()
			if rows := f.run("audit", "list", "--json"); strings.Count(rows, "deploy.after_merge") != 2 {
				t.Errorf("%s", rows)
			}
			f.run("audit", "verify")
		})
	}
}

// noted waits until a server has looked for merges once: those of before are not deployed.
func (f *forged) noted(agentpack string) {
	f.Helper()
	eventually(f.T, "the first look for merges", func() bool {
		_, err := os.Stat(filepath.Join(agentpack, "state", "merges.json"))
		return err == nil
	})
}

// TestAMergeAtALocalRepositoryIsDeployed is the whole way with real git: proposed, merged by a person, fetched, in
// place.
func TestAMergeAtALocalRepositoryIsDeployed(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, map[string]string{
		"CLAUDEOPS_TOOLSETS": "pr,deploy", "AGENTPACK_HOME": "$DIR/agentpack", "CLAUDEOPS_DEPLOY_AFTER_MERGE": "yes, please",
	})
	agentpack := filepath.Join(w.dir, "agentpack")
	operationtest.WriteFiles(t, w.dir, map[string]string{"agentpack/.keep": ""})
	bare := filepath.Join(w.dir, "root", "demo", "home.git")
	runGit(t, w.dir, "clone", "-q", bare, "seedwork")
	work := filepath.Join(w.dir, "seedwork")
	operationtest.WriteFiles(t, work,
		map[string]string{"agentpack.yaml": strings.Replace(proceduresOfCodex, "checks/ask.md", "checks/new.md", 1)})
	runGit(t, work, "add", "-A")
	runGit(t, work, "commit", "-q", "-m", "x")
	runGit(t, work, "push", "-q", "origin", "HEAD:main")
	runGit(t, w.dir, "clone", "-q", bare, filepath.Join(agentpack, "repo"))
	if out, code := w.command(lookupIn(w.env), "serve", "--addr", "127.0.0.1:99999"); code == 0 ||
		!strings.Contains(out, "neither true nor false: false holds") {
		t.Errorf("a value that is no boolean: %d, %s", code, out)
	}
	w.env["CLAUDEOPS_DEPLOY_AFTER_MERGE"] = "false"
	w.env["CLAUDEOPS_TOOLSETS"] = "pr"
	if out, code := w.command(lookupIn(w.env), "serve", "--deploy-after-merge"); code != 2 ||
		!strings.Contains(out, "CLAUDEOPS_TOOLSETS does not have deploy") {
		t.Errorf("without the toolset: %d, %s", code, out)
	}
	w.env["CLAUDEOPS_TOOLSETS"] = "pr,deploy"
	stop := w.serve("--deploy-after-merge")
	eventually(t, "the first look for merges", func() bool {
		_, err := os.Stat(filepath.Join(agentpack, "state", "merges.json"))
		return err == nil
	})
	if out, code := w.command(lookupIn(w.env), "review", "merge", "1", "--repo", "demo/home"); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	name := filepath.Join(w.dir, ".codex", "prompts", "new.md")
	eventually(t, "the deployment", func() bool {
		_, err := os.Stat(name)
		return err == nil
	})
	eventually(t, "its record", func() bool {
		out, _ := w.command(lookupIn(w.env), "audit", "list", "--json")
		return strings.Contains(out, "deploy.after_merge")
	})
	stop()
	want, err := os.ReadFile(filepath.Join(agentpack, "repo", "checks", "new.md"))
	if got, readErr := os.ReadFile(name); err != nil || readErr != nil || string(got) != string(want) {
		t.Errorf("%q, want %q, %v, %v", got, want, err, readErr)
	}
}

// eventually waits until a thing is so, a minute at most.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=ann",
		"GIT_AUTHOR_EMAIL=ann@example.org",
		"GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.org")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// serve starts a server; stop ends it.
func (w *peopleWorld) serve(args ...string) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, append([]string{"serve"}, args...), cli.Streams{In: strings.NewReader(""), Out: io.Discard,
			Err: io.Discard}, lookupIn(w.env))
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != 0 {
			w.Errorf("the server ended with %d", code)
		}
	})
	w.Cleanup(stop)
	return stop
}
