package cli_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/ops/notify"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const forgeSecret = "a secret that forge and server share"

// forged is a forge with one repository, an agent's pull request in it, and a server that follows it.
type forged struct {
	*testing.T
	source string
	people *memhost.World
	repo   gitprovider.RepoRef
	env    map[string]string
	told   chan string // events that people were told of
	url    string
	stop   func()
}

// newForged has the environment for a forge. people act at the forge itself.
func newForged(t *testing.T, source string) *forged {
	t.Helper()
	f := &forged{T: t, source: source, told: make(chan string, 100)}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var m notify.Message
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		f.told <- fmt.Sprintf("%s #%d by %s", m.Event, m.Number, m.Caller)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	f.env = map[string]string{
		"CLAUDEOPS_STATE_DIR": t.TempDir(), "CLAUDEOPS_TIER": "2", "CLAUDEOPS_ADDR": "127.0.0.1:0",
		"CLAUDEOPS_WEBHOOK_URL": receiver.URL, "CLAUDEOPS_WEBHOOK_SECRET": "a-secret-for-notices",
		strings.ToUpper(source) + "_WEBHOOK_SECRET": forgeSecret, "PATH": os.Getenv("PATH"), "HOME": t.TempDir(),
	}
	files := []memhost.File{{Path: "README.md", Content: "# Infra\n"}}
	if source == "gitea" {
		s := fakegitea.New(t)
		f.env["GITEA_URL"], f.env["GITEA_TOKEN"] = s.URL(), s.Token()
		f.repo = s.AddRepo(files...)
		f.people = s.Host().World(t, f.repo, nil)
	} else {
		s := fakegithub.New(t)
		f.env["GITHUB_API_URL"], f.env["GITHUB_TOKEN"] = s.URL(), s.Token()
		f.repo = s.AddRepo(files...)
		f.people = s.Host().World(t, f.repo, nil)
	}
	return f
}

func (f *forged) lookup(name string) (string, bool) { return lookupIn(f.env)(name) }

// run runs a command, and returns what it prints.
func (f *forged) run(args ...string) string {
	f.Helper()
	out, problems, code := runCommand(f, f.lookup, args...)
	if code != 0 {
		f.Fatalf("%v: exit code %d: %s", args, code, problems)
	}
	return out
}

// propose opens a pull request as the agent does.
func (f *forged) propose(title string) {
	f.Helper()
	content := filepath.Join(f.TempDir(), "content.md")
	must.Do(f, os.WriteFile(content, []byte("# "+title+"\n"), 0o600))
	f.run("pr", "create", "--repo", f.repo.String(), "--title", title, "--body", "why", "--create",
		"checks/"+strings.ReplaceAll(title, " ", "-")+".md="+content)
	if got := <-f.told; !strings.HasPrefix(got, "opened ") {
		f.Fatalf("people were told: %s", got)
	}
}

// serve starts a server, and stops it at the end of the test at the latest.
func (f *forged) serve() {
	f.Helper()
	s := serveUntil(f, "http://", f.lookup)
	f.url, f.stop = s.url, s.stop
}

// hear sends what the forge sends when something has happened to a pull request, and returns the status.
func (f *forged) hear(id, event, action string, number int) int {
	f.Helper()
	return f.send(id, event,
		fmt.Sprintf(
			`{"action":%q,"number":%[2]d,"pull_request":{"number":%[2]d,"state":"open"},"repository":{"full_name":%[3]q}}`,
			action, number, f.repo.String()))
}

// send sends a delivery.
func (f *forged) send(id, event, body string) int {
	f.Helper()
	mac := hmac.New(sha256.New, []byte(forgeSecret))
	_, _ = mac.Write([]byte(body))
	prefix, name, signature := "X-Gitea-", "X-Gitea-Signature", hex.EncodeToString(mac.Sum(nil))
	if f.source == "github" {
		prefix, name, signature = "X-GitHub-", "X-Hub-Signature-256", "sha256="+signature
	}
	r, err := http.NewRequestWithContext(f.Context(), http.MethodPost, f.url+"/webhooks/"+f.source,
		strings.NewReader(body))
	if err != nil {
		f.Error(err)
		return 0
	}
	for header, value := range map[string]string{"Content-Type": "application/json", prefix + "Delivery": id,
		prefix + "Event": event, name: signature} {
		r.Header.Set(header, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Error(err)
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// actions counts the rows of the audit about ends of pull requests.
func (f *forged) actions() map[string]int {
	f.Helper()
	counts := map[string]int{}
	for _, match := range regexp.MustCompile(`"action": "(pull\.\w+)"`).FindAllStringSubmatch(f.run("audit", "list",
		"--json"), -1) {
		counts[match[1]]++
	}
	return counts
}

// A merge at the forge reaches people within one webhook, once, whatever the forge sends and however often.
func TestAMergeAtAForgeReachesPeopleOnce(t *testing.T) {
	t.Parallel()
	for source, by := range map[string]string{"github": "ann", "gitea": fakegitea.Owner} {
		t.Run(source, func(t *testing.T) {
			f := newForged(t, source)
			f.propose("inodes")
			f.propose("memory")
			f.serve()
			if status := f.hear("early", "pull_request", "closed", 1); status != 202 { // the payload says what is not so
				t.Errorf("status %d", status)
			}
			f.people.Merge(1)
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					if status := f.hear(fmt.Sprint("merge-", i), "pull_request", "closed", 1); status != 202 {
						t.Errorf("delivery %d: status %d", i, status)
					}
				})
			}
			all.Wait()
			if got := <-f.told; got != "merged #1 by "+by {
				t.Errorf("people were told: %s", got)
			}
			if status := f.hear("merge-3", "pull_request", "closed", 1); status != 409 {
				t.Errorf("a replay: status %d", status)
			}
			f.people.Close(2)
			if status := f.hear("close", "pull_request", "closed", 2); status != 202 {
				t.Errorf("status %d", status)
			}
			if got := <-f.told; got != "closed #2 by " {
				t.Errorf("people were told: %s", got)
			}
			f.stop() // it looks at what waits before it ends
			close(f.told)
			for more := range f.told {
				t.Errorf("people were told again: %s", more)
			}
			if got := fmt.Sprint(f.actions()); got != "map[pull.closed:1 pull.merged:1]" {
				t.Errorf("audit: %s", got)
			}
			f.run("audit", "verify")
		})
	}
}

// A person's commit on the branch of a pull request is recorded as its head by each of the webhooks that a push leads
// to.
func TestAPushAtAForgeRecordsTheNewHead(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"github", "gitea"} {
		t.Run(source, func(t *testing.T) {
			f := newForged(t, source)
			f.propose("inodes")
			branch := regexp.MustCompile(`"branch": "(claude-ops/[^"]+)"`).FindStringSubmatch(f.run("pr", "list", "--repo",
				f.repo.String(), "--json"))[1]
			head := f.people.Push(branch, memhost.File{Path: "checks/inodes.md", Content: "# Shorter\n"})
			f.serve()
			if status := f.send("a", "push", fmt.Sprintf(`{"ref":"refs/heads/%s","repository":{"full_name":%q}}`, branch,
				f.repo.String())); status != 202 {
				t.Errorf("status %d", status)
			}
			f.stop() // it looks at what waits before it ends
			f.wantHead(head)
			head = f.people.Push(branch, memhost.File{Path: "checks/inodes.md", Content: "# Shorter still\n"})
			f.serve()
			action := map[string]string{"github": "synchronize", "gitea": "synchronized"}[source]
			if status := f.hear("b", "pull_request", action, 1); status != 202 {
				t.Errorf("status %d", status)
			}
			f.stop()
			f.wantHead(head)
		})
	}
}

// wantHead holds what is recorded as the head of the first pull request.
func (f *forged) wantHead(commit string) {
	f.Helper()
	s, err := store.Open(f.Context(), f.env["CLAUDEOPS_STATE_DIR"], store.Options{})
	must.Do(f, err)
	defer s.Close()
	r, found, err := s.Pulls.FindPull(f.Context(), record.PullKey{Provider: f.source, Owner: f.repo.Owner,
		Repo: f.repo.Name, Number: 1})
	if err != nil || !found || r.Head != commit || r.SeenBy != record.DoorWebhook {
		f.Errorf("recorded is %+v, %t, %v; want the head %s", r, found, err, commit)
	}
}

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
			appears(t, filepath.Join(agentpack, "state", "merges.json")) // merges of before are not deployed
			merge("memory", 2, "three")
			if got := <-f.told; got != "deploy_waits #2 by " {
				t.Errorf("people were told: %s", got)
			}
			deployed("a person's")
			must.Do(t, os.Remove(filepath.Join(prompts, "ask.md")))
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

// appears waits until there is a file.
func appears(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the file "+name, 50*time.Millisecond, func() bool {
		_, err := os.Stat(name)
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
		t.Errorf("a value that is not a boolean: %d, %s", code, out)
	}
	w.env["CLAUDEOPS_DEPLOY_AFTER_MERGE"] = "false"
	w.env["CLAUDEOPS_TOOLSETS"] = "pr"
	if out, code := w.command(lookupIn(w.env), "serve", "--deploy-after-merge"); code != 2 ||
		!strings.Contains(out, "CLAUDEOPS_TOOLSETS does not have deploy") {
		t.Errorf("without the toolset: %d, %s", code, out)
	}
	w.env["CLAUDEOPS_TOOLSETS"] = "pr,deploy"
	s := serveUntil(w, "http://", lookupIn(w.env), "--deploy-after-merge")
	appears(t, filepath.Join(agentpack, "state", "merges.json")) // the first look for merges
	if out, code := w.command(lookupIn(w.env), "review", "merge", "1", "--repo", "demo/home"); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	name := filepath.Join(w.dir, ".codex", "prompts", "new.md")
	appears(t, name)
	eventually(t, "its record", 50*time.Millisecond, func() bool {
		out, _ := w.command(lookupIn(w.env), "audit", "list", "--json")
		return strings.Contains(out, "deploy.after_merge")
	})
	s.stop()
	want, err := os.ReadFile(filepath.Join(agentpack, "repo", "checks", "new.md"))
	if got, readErr := os.ReadFile(name); err != nil || readErr != nil || string(got) != string(want) {
		t.Errorf("%q, want %q, %v, %v", got, want, err, readErr)
	}
}

// eventually looks at intervals until a thing is so, a minute at most.
func eventually(t *testing.T, what string, every time.Duration, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(every) {
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
