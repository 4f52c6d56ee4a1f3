package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/notify"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
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

func (f *forged) lookup(name string) (string, bool) {
	value, found := f.env[name]
	return value, found
}

// run runs a command, and returns what it prints.
func (f *forged) run(args ...string) string {
	f.Helper()
	var out, problems bytes.Buffer
	if code := cli.Run(f.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems},
		f.lookup); code != 0 {
		f.Fatalf("%v: exit code %d: %s", args, code, problems.String())
	}
	return out.String()
}

// propose opens a pull request as the agent does.
func (f *forged) propose(title string) {
	f.Helper()
	content := filepath.Join(f.TempDir(), "content.md")
	if err := os.WriteFile(content, []byte("# "+title+"\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.run("pr", "create", "--repo", f.repo.String(), "--title", title, "--body", "why", "--create",
		"checks/"+strings.ReplaceAll(title, " ", "-")+".md="+content)
	if got := <-f.told; !strings.HasPrefix(got, "opened ") {
		f.Fatalf("people were told: %s", got)
	}
}

// serve starts a server, and stops it at the end of the test at the latest.
func (f *forged) serve() {
	f.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, []string{"serve"}, cli.Streams{In: strings.NewReader(""), Out: writer, Err: io.Discard},
			f.lookup)
		_ = writer.Close()
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		f.Fatalf("it does not say where it listens: %q, %v", line, err)
	}
	f.url = regexp.MustCompile(`http://[0-9.:]+`).FindString(line)
	f.stop = sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != 0 {
			f.Errorf("the server ended with %d", code)
		}
	})
	f.Cleanup(f.stop)
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
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	r, found, err := s.Pulls.FindPull(f.Context(), record.PullKey{Provider: f.source, Owner: f.repo.Owner,
		Repo: f.repo.Name, Number: 1})
	if err != nil || !found || r.Head != commit || r.SeenBy != record.DoorWebhook {
		f.Errorf("recorded is %+v, %t, %v; want the head %s", r, found, err, commit)
	}
}
