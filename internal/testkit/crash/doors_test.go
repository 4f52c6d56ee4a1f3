//go:build linux

package crash

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

const doorsToken = "tok-hook-4f0a7be2d9135c68"

// fakeAgent is a Claude CLI whose session ends at once.
const fakeAgent = `#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"ok","session_id":"s"}'
`

// doors are processes that began before a pause and through which everything can be asked for that it stops.
type doors struct {
	*reviewed
	agents *server // MCP
	url    string  // of claudeops serve
	token  string  // of its operator
}

// openDoors starts them in a world in which #1 waits for a revision, and a procedure for its deployment.
func openDoors(t *testing.T) *doors {
	t.Helper()
	d := &doors{reviewed: newReviewed(t)}
	sum := sha256.Sum256([]byte(doorsToken))
	for name, text := range map[string]string{
		"policy.yaml":                 policyText + "hooks: {alerts: {token_sha256: " + hex.EncodeToString(sum[:]) + "}}\n",
		"claude":                      fakeAgent,
		"scripts/Agent/check-disk.sh": "#!/bin/sh\n# Check how full a disk is.\necho looked\n",
		".claude/commands/fix.md":     "---\ndescription: Fix it\n---\nFix it.\n",
	} {
		if err := os.MkdirAll(filepath.Dir(d.at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.at(name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := &child{}
	c.cmd, c.cancel = d.prepare(t, "claudeops", "deploy", "init")
	c.cmd.Env = append(c.cmd.Env, d.settings()...)
	if _, code := c.start(t, "").wait(t); code != 0 {
		t.Fatalf("deploy init: exit %d\n%s%s", code, &c.out, &c.err)
	}
	d.agents = d.serve(t, d.settings()...)
	d.url = d.serveWeb(t)
	token, err := os.ReadFile(d.at("state/operator-token"))
	if err != nil {
		t.Fatal(err)
	}
	d.token = strings.TrimSpace(string(token))
	return d
}

func (d *doors) settings() []string {
	return []string{"CLAUDEOPS_TIER=3", "CLAUDEOPS_TOOLSETS=pr,deploy,scripts", "CLAUDEOPS_ALLOW_WRITE=true",
		"CLAUDEOPS_ADDR=127.0.0.1:0",
		"AGENTPACK_HOME=" + d.at("agentpack"), "CLAUDEOPS_CLAUDE_BIN=" + d.at("claude"), "ANTHROPIC_API_KEY=dummy"}
}

// serveWeb starts claudeops serve, and returns its address.
func (d *doors) serveWeb(t *testing.T, more ...string) string {
	t.Helper()
	cmd, cancel := d.prepare(t, "claudeops", "serve")
	cmd.Env = append(append(cmd.Env, d.settings()...), more...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cancel()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(first)
	if err != nil || url == "" {
		t.Fatalf("the server said %q, %v", first, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return url
}

// post asks the server, and returns what it answers.
func (d *doors) post(path, token, body string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodPost, d.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// all are the doors by name, in whose order they are tried. Each returns what it was answered.
func (d *doors) all() map[string]func() ([]byte, error) {
	tool := func(name string, arguments any) func() ([]byte, error) {
		return func() ([]byte, error) { return d.agents.call(name, arguments) }
	}
	reply := request{Owner: repoOwner, Name: repoName, Title: "x", Body: "x", ChangeType: "check", Revises: 1,
		Files: []file{}, Reply: "It counts files."}
	const alert = `{"status":"firing","alerts":[{"status":"firing","fingerprint":"f1"}]}`
	return map[string]func() ([]byte, error){
		"a proposal":   tool("create_pr", newCheck("Watch load", "checks/load.md", "# Load\n")),
		"a revision":   tool("create_pr", newRevision("Watch inodes, and how", "# Inodes\n\ndf -i\n")),
		"an answer":    tool("create_pr", reply),
		"a script":     tool("check_disk", struct{}{}),
		"a deployment": tool("deploy_apply", map[string]bool{"yes": true, "adopt": true}),
		"a session":    func() ([]byte, error) { return d.post("/api/v1/sessions", d.token, `{"tier":1}`) },
		"a hook":       func() ([]byte, error) { return d.post("/hooks/run/alerts", doorsToken, alert) },
	}
}

// written is what the doors can leave.
type written struct {
	branches map[string]string
	pulls    []gitprovider.PullRequest
	files    []string
	scripts  int
	sessions []string
}

func (d *doors) written(t *testing.T) (out written) {
	t.Helper()
	out.branches, out.pulls = d.branches(t), d.pulls(t, "")
	for _, pattern := range []string{"agentpack/*/*", "agentpack/*/snapshots/*", ".claude/*/*", ".codex/*"} {
		found, err := filepath.Glob(d.at(pattern))
		if err != nil {
			t.Fatal(err)
		}
		out.files = append(out.files, found...)
	}
	runs, err := d.store(t).ScriptRuns().ScriptRuns(t.Context(), record.ScriptRunQuery{})
	if err != nil {
		t.Fatal(err)
	}
	out.scripts = len(runs)
	all, err := d.store(t).AgentSessions.Sessions(t.Context(), sessions.Query{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		out.sessions = append(out.sessions, fmt.Sprintf("%s %s %s%s", s.Trigger, s.State, s.Cause, s.Claude))
	}
	return out
}

// TestAPauseOfOneProcessClosesTheDoorsOfOthers asks, through processes that began before it, for everything that a
// pause stops, and holds that nothing is written. What is refused then is done when a person has resumed.
func TestAPauseOfOneProcessClosesTheDoorsOfOthers(t *testing.T) {
	d := openDoors(t)
	before := d.written(t)
	d.run(t, "pause", "--why", "moving")
	all := d.all()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		said, err := all[name]()
		if err != nil || !strings.Contains(string(said), "everything is paused by") ||
			!strings.Contains(string(said), "do not retry before") {
			t.Errorf("%s: %s, %v", name, said, err)
		}
	}
	after := d.written(t)
	if !maps.Equal(after.branches, before.branches) || len(after.pulls) != len(before.pulls) ||
		!slices.Equal(after.files, before.files) || len(after.sessions)+after.scripts > 0 {
		t.Errorf("written while everything was paused: %+v, before %+v", after, before)
	}
	d.serveWeb(t, "CLAUDEOPS_INTERVAL=1h") // a session is due at once
	for end := d.deadline(t); len(d.written(t).sessions) == 0; end() {
	}
	if got := d.written(t).sessions; !slices.Equal(got, []string{"schedule skipped paused"}) {
		t.Errorf("the schedule left %v", got)
	}
	d.assertNothingReserved(t)
	d.run(t, "resume")
	d.assertOpen(t, all)
}

// assertOpen tries each door again after the end of a pause, and looks at what came of those that leave something.
func (d *doors) assertOpen(t *testing.T, all map[string]func() ([]byte, error)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		said, err := all[name]()
		if err != nil || strings.Contains(string(said), "paused") {
			t.Errorf("%s, after the pause: %s, %v", name, said, err)
		}
		if want := map[string]string{"a deployment": `"ok":true`, "a script": "looked"}[name]; !strings.Contains(string(said),
			want) {
			t.Errorf("%s, after the pause: %s", name, said)
		}
	}
	// the agent was started, and ended without having reached its server
	ran := func(s string) bool { return strings.HasPrefix(s, "hook failed ") && strings.HasSuffix(s, "2.1.329") }
	for end := d.deadline(t); !slices.ContainsFunc(d.written(t).sessions, ran); end() {
	}
	left := d.written(t)
	if left.scripts != 1 || len(left.pulls) != 2 || len(d.commits(t)) != 2 {
		t.Errorf("after the pause there are %d scripts, %d pull requests, and #1 has %v", left.scripts, len(left.pulls),
			d.commits(t))
	}
}

// deadline returns what a test calls while it waits for something of another process: it fails after patience.
func (d *doors) deadline(t *testing.T) func() {
	t.Helper()
	end := time.Now().Add(patience)
	return func() {
		if time.Now().After(end) {
			t.Fatalf("it does not come: %+v", d.written(t))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
