//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// lookScript is what an agent with a shell could try: it prints environment and arguments of every process that it may
// look at, its model's key aside, and all configurations that it finds. Then it reads a pipe, for the test to look
// around.
const lookScript = `for p in /proc/[0-9]*; do
    tr '\0' ' ' <$p/cmdline; echo
    { tr '\0' '\n' <$p/environ | grep -v ANTHROPIC_API_KEY; } 2>/dev/null || echo "closed: $(tr '\0' ' ' <$p/cmdline)"
done
find / -name mcp.json -not -path '/app/*' -exec cat {} + 2>/dev/null
cat /repos/pipe
`

// The operator permits cat, and one script. Tokens come by files, as compose has them, and one by the environment.
func sessionLooksForTokens(t *testing.T, r *rig) {
	repos := r.world.vars["CLAUDEOPS_REPOS_DIR"]
	for name, text := range map[string]string{"look.sh": lookScript, "note": "a note\n"} {
		if err := os.WriteFile(filepath.Join(repos, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pipe := filepath.Join(repos, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	r.env["GITHUB_TOKEN"], r.env["GITHUB_TOKEN_FILE"] = forgeToken, ""
	r.env["CLAUDEOPS_AGENT_TOOLS"] = "Bash(cat *),Bash(sh /repos/look.sh)"
	permitted := []reply{bash("cat /repos/note"), bash("sh /repos/look.sh")}
	forbidden := []reply{
		bash("cat /run/secrets/claudeops_webhook_secret"), bash("cat /run/secret?/claudeops_webhook_secret"),
		bash("cat /state/claudeops.db"),
		bash("cat /stat?/claudeops.db"), bash("cat /proc/self/environ"), bash("cat /proc/*/environ"),
		bash("cat /tmp/*/private/settings.json"),
		bash("env"), read("/run/secrets/claudeops_webhook_secret"), read("/state/claudeops.db"), read("/proc/self/environ"),
		read("/app/.claude/mcp.json"),
	}
	u := r.begin(t, scriptedSession(append(permitted, forbidden...)...), "--tier", "2")
	r.whileReading(t, u, pipe)
	got := r.end(t, u)
	results := got.seen[len(got.seen)-1].results()
	if len(results) != len(permitted)+len(forbidden) {
		t.Fatalf("the model saw %d results", len(results))
	}
	for i, result := range results {
		if result.isError != (i >= len(permitted)) {
			t.Errorf("call %d: error %t: %.300s", i, result.isError, result.text)
		}
	}
	looked := results[1].text
	for _, want := range []string{"CLAUDEOPS_RUN=", "closed: /app/claudeops run",
		"/app/claudeops-connect --connect unix:/tmp/", "seen\n"} {
		if !strings.Contains(looked+"\n", want) {
			t.Errorf("the script does not show %q: %s", want, looked)
		}
	}
	if strings.Contains(looked, "closed: /app/claudeops-connect") {
		t.Error("the script could not look at the connector, which has nothing to hide")
	}
	if strings.Contains(looked, "mcpServers") {
		t.Error("the script found a configuration")
	}
	if s := got.one(t, "succeeded"); s.Denied < 8 || s.BadLines > 0 {
		t.Errorf("recorded %+v", s)
	}
	for _, token := range append(r.tokens(), modelKey) {
		if got := r.exec(t, nil, "grep", "-rlF", token, "/home/claudeops", "/tmp", "/state", "/git"); got.stdout != "" {
			t.Errorf("%s is kept in %s", token, got.stdout)
		}
	}
	r.assertNothingLeft(t)
	r.assertEmpty(t)
}

// whileReading holds, while a command of the agent reads the pipe, that no process but ours has a token in its
// environment, and none at all among its arguments.
func (r *rig) whileReading(t *testing.T, u underway, pipe string) {
	t.Helper()
	opened := newGate()
	var end *os.File
	var err error
	go func() {
		end, err = os.OpenFile(pipe, os.O_WRONLY, 0) // waits for a reader
		opened.open()
	}()
	u.reached(t, opened.closed)
	if err != nil {
		t.Fatal(err)
	}
	pids := r.running("")
	if len(pids) < 5 { // run, the CLI, its server, the script, cat
		t.Errorf("only %d processes run", len(pids))
	}
	for _, pid := range pids {
		line, environment := proc(pid, "cmdline"), proc(pid, "environ")
		if strings.HasPrefix(line, "/app/claudeops\n") {
			environment = ""
		}
		for _, token := range r.tokens() {
			if strings.Contains(line+environment, token) {
				t.Errorf("%s shows a token", line)
			}
		}
	}
	if _, err := end.WriteString("seen\n"); err != nil {
		t.Error(err)
	}
	if err := end.Close(); err != nil {
		t.Error(err)
	}
}

func bash(command string) reply { return free("Bash", map[string]any{"command": command}) }
func read(file string) reply    { return free("Read", map[string]any{"file_path": file}) }
