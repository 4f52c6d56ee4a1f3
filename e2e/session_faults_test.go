//go:build e2e && linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/deploytest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// shim runs the real CLI with another MCP server in its configuration.
const shim = `#!/bin/sh
[ "$1" = --version ] && exec claude --version
left=$#
while [ $left -gt 0 ]; do
    arg=$1
    shift
    left=$((left - 1))
    if [ "$before" = --mcp-config ]; then
        sed 's|"command":"/app/claudeops-connect","args":\[[^]]*\]|SERVER|' "$arg" > "$TMPDIR/mcp.json"
        set -- "$@" "$TMPDIR/mcp.json"
    else
        set -- "$@" "$arg"
    fi
    before=$arg
done
exec claude "$@"
`

// sessionFault is a session that cannot succeed.
type sessionFault struct {
	name   string
	env    map[string]string // "" takes a variable away
	claude string            // if not empty, the program in the CLI's place
	api    http.HandlerFunc  // the Messages API; nil for one that is never to be asked
	state  string
	reason string
}

// The CLI asks its model as soon as it has said that our server failed: it is ended then, whatever the model answers.
func sessionFaults() []sessionFault {
	noRetries := map[string]string{"CLAUDEOPS_AGENT_ENV": "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_MAX_RETRIES": "0"}
	hasty := map[string]string{"CLAUDEOPS_AGENT_ENV": "MCP_TIMEOUT", "MCP_TIMEOUT": "500"}
	return []sessionFault{
		{name: "nobody is logged in", env: map[string]string{"ANTHROPIC_API_KEY": ""}, state: "failed",
			reason: "set ANTHROPIC_API_KEY"},
		{name: "the key is refused", api: refusing(http.StatusUnauthorized, "authentication_error"), state: "failed",
			reason: "does not take the agent's credential (status 401)"},
		{name: "the API fails", env: noRetries, api: refusing(http.StatusInternalServerError, "api_error"), state: "failed",
			reason: "claude reported an error: "},
		{
			name: "the API never answers", env: map[string]string{"CLAUDEOPS_SESSION_TIMEOUT": "5s"}, state: "timeout",
			reason: "CLAUDEOPS_SESSION_TIMEOUT",
			api:    neverAnswering,
		},
		{name: "the MCP server ends at once", claude: withServer(`"command":"/bin/false"`), api: neverAnswering,
			state: "failed", reason: "could not connect to the claudeops MCP server"},
		{
			name: "the MCP server never answers", claude: withServer(`"command":"/bin/sleep","args":["600"]`), env: hasty,
			api:   neverAnswering,
			state: "failed", reason: "could not connect to the claudeops MCP server",
		},
	}
}

func withServer(entry string) string { return strings.Replace(shim, "SERVER", entry, 1) }

// refusing is an API that answers with an error.
func refusing(status int, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":"no"}}`, kind)
	}
}

// neverAnswering is an API that waits until its caller goes away.
func neverAnswering(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices that a caller has gone when the body has been read
	<-r.Context().Done()
}

func TestSessionFaultsInTheImage(t *testing.T) {
	img := buildImage(t)
	t.Run("one after the other", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, img, forges()["local"], nil)
		for _, f := range sessionFaults() {
			t.Run(f.name, func(t *testing.T) {
				one := *r
				one.env = maps.Clone(r.env)
				f.play(t, &one)
				r.assertEmpty(t)
				r.assertAudited(t)
			})
		}
		r.close(t)
	})
	for name, f := range map[string]struct {
		change func(*deploytest.Service)
		play   func(*testing.T, *rig)
	}{
		"the state folder cannot be written": {readOnlyState, sessionWithoutState},
		"the disk is full from the start":    {smallState, sessionOnAFullDisk},
		"the disk fills up in the middle":    {smallState, sessionThatFillsTheDisk},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, img, forges()["local"], f.change)
			f.play(t, r)
			r.close(t)
		})
	}
}

func (f sessionFault) play(t *testing.T, r *rig) {
	t.Helper()
	for name, value := range f.env {
		r.env[name] = value
		if value == "" {
			delete(r.env, name)
		}
	}
	if f.claude != "" {
		file := filepath.Join(r.world.vars["CLAUDEOPS_REPOS_DIR"], "claude")
		writeProgram(t, file, f.claude)
		r.env["CLAUDEOPS_CLAUDE_BIN"] = "/repos/claude"
	}
	stub := newMessagesStub(t, nil)
	const most = 3 // a session that cannot go on is ended, whatever the CLI would try again
	var asked atomic.Int32
	stub.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if f.api == nil || q.Method == http.MethodPost && asked.Add(1) > most {
			t.Errorf("the model was asked: %s %s", q.Method, q.URL)
			return
		}
		f.api(w, q)
	})
	got := told{outcome: r.exec(t, r.environment(stub.URL), "/app/claudeops", "run", "--json", "--tier", "1")}
	got.sessions = decode[sessions](t, got.stdout).Sessions
	r.assertDiscreet(t, got)
	r.assertNothingLeft(t)
	s := got.one(t, f.state)
	if !strings.Contains(s.Reason, f.reason) || s.Counts != (counts{}) {
		t.Errorf("recorded %+v, want the reason %q", s, f.reason)
	}
}

func readOnlyState(s *deploytest.Service) {
	for i := range s.Volumes {
		s.Volumes[i].ReadOnly = s.Volumes[i].ReadOnly || s.Volumes[i].Target == "/state"
	}
}

func smallState(s *deploytest.Service) {
	s.Volumes = slices.DeleteFunc(s.Volumes, func(m deploytest.Mount) bool { return m.Target == "/state" })
	s.Tmpfs = append(s.Tmpfs, "/state:size=4m,mode=1777")
}

// refused holds that a run does not start, for the reason and with the exit code, and that no agent ran.
func (r *rig) refused(t *testing.T, code int, reason string) {
	t.Helper()
	got := r.run(t, nil, "--tier", "1") // whose model cannot be asked
	if got.code != code || len(got.sessions) > 0 || len(got.seen) > 0 || !strings.Contains(got.stderr+got.stdout, reason) {
		t.Errorf("exit %d, want the reason %q:\n%s%s", got.code, reason, got.stdout, got.stderr)
	}
}

func sessionWithoutState(t *testing.T, r *rig) {
	r.refused(t, 5, "the file system of the state folder /state is read-only")
	if branches := r.branches(t); len(branches) > 0 {
		t.Errorf("branches were made: %v", branches)
	}
}

// fill writes to the state folder until the disk is full, and returns what frees it.
func (r *rig) fill(t *testing.T) (free func()) {
	t.Helper()
	name := r.inside(t, "/state/filling")
	file := must.Get(os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600))(t)
	defer func() { _ = file.Close() }()
	for chunk := make([]byte, 4096); ; {
		if _, err := file.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

func sessionOnAFullDisk(t *testing.T, r *rig) {
	free := r.fill(t)
	r.refused(t, 5, "is full; free some space")
	free()
	r.run(t, scriptedSession(use("create_pr", r.proposal())), "--tier", "2").one(t, "succeeded")
	r.assertProposed(t, quieterDiskBranch, r.proposal())
	r.assertAudited(t, "opened")
}

// What an agent does is recorded or ends. Its proposal, if it came that far, is there once when the disk has room
// again.
func sessionThatFillsTheDisk(t *testing.T, r *rig) {
	thinks, answer := newGate(), newGate()
	u := r.begin(t, func(_ string, results []seenResult) reply {
		thinks.open()
		<-answer.closed
		return scripted(use("create_pr", r.proposal()))(results)
	}, "--tier", "2")
	t.Cleanup(answer.open)
	u.reached(t, thinks.closed)
	free := r.fill(t)
	answer.open()
	got := r.end(t, u)
	if got.code != 5 || !strings.Contains(got.stderr+got.stdout, "is full; free some space") {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	r.assertNothingLeft(t)
	if branches := r.branches(t); len(branches) > 0 {
		t.Errorf("without a record there are %v", branches)
	}
	free()
	r.assertSettles(t, false)
}

// underway is a run that has not ended.
type underway struct {
	stub *messagesStub
	done <-chan finished
}

// begin starts a run.
func (r *rig) begin(t *testing.T, m sessionModel, args ...string) underway {
	t.Helper()
	stub := newSessionStub(t, m)
	return underway{stub, r.start(t, r.environment(stub.URL),
		append([]string{"/app/claudeops", "run", "--json"}, args...)...)}
}

// end waits for the end of a run.
func (r *rig) end(t *testing.T, u underway) told {
	t.Helper()
	got := told{outcome: (<-u.done).or(t), seen: u.stub.requests(t)}
	if got.stdout != "" {
		got.sessions = decode[sessions](t, got.stdout).Sessions
	}
	r.assertDiscreet(t, got)
	return got
}

// signal sends a signal to the supervisor.
func (r *rig) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	must.Do(t, syscall.Kill(r.one(t, "/app/claudeops run"), s))
}

// reached waits until something has happened in a session, which must not end before.
func (u underway) reached(t *testing.T, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case early := <-u.done:
		t.Fatalf("the run ended early: %+v", early)
	}
}

func (u underway) assertNotDone(t *testing.T) {
	t.Helper()
	select {
	case early := <-u.done:
		t.Fatalf("the run ended early: %+v", early)
	case <-time.After(10 * time.Millisecond): // until it is asked again
	}
}

// gate is opened once, by the test or by its end.
type gate struct {
	closed chan struct{}
	open   func()
}

func newGate() gate {
	closed := make(chan struct{})
	return gate{closed, sync.OnceFunc(func() { close(closed) })}
}

func sessionEndedWhileItsModelThinks(t *testing.T, r *rig) {
	thinks, answer := newGate(), newGate()
	u := r.begin(t, func(string, []seenResult) reply {
		thinks.open()
		<-answer.closed
		return use("create_pr", r.proposal())
	}, "--tier", "2")
	t.Cleanup(answer.open)
	u.reached(t, thinks.closed)
	other := startContainer(t, r.args)
	second := other.exec(t, r.environment(u.stub.URL), "/app/claudeops", "run", "--tier", "1")
	if second.code != 3 || second.stdout != "" || !strings.Contains(second.stderr, "is running in this state folder") {
		t.Errorf("a second session beside it: exit %d\n%s%s", second.code, second.stdout, second.stderr)
	}
	other.close(t)
	r.signal(t, syscall.SIGTERM)
	got := (<-u.done).or(t)
	answer.open()
	u.done = closedWith(got)
	if s := r.end(t, u).one(t, "cancelled"); !strings.Contains(s.Reason, "signal") || s.Counts != (counts{}) {
		t.Errorf("recorded %+v", s)
	}
	r.assertNothingLeft(t)
	r.assertEmpty(t)
	r.assertAudited(t)
}

// closedWith is a run that has ended.
func closedWith(o outcome) <-chan finished {
	done := make(chan finished, 1)
	done <- finished{outcome: o}
	return done
}

// A proposal that is being written when the signal comes is finished and recorded, though the CLI has ended by then.
func sessionEndedWhileItProposes(t *testing.T, r *rig) {
	writing, write := r.hold(t, r.world)
	u := r.begin(t, scriptedSession(use("create_pr", r.proposal())), "--tier", "2")
	writing(u)
	claude := r.one(t, "claude -p")
	r.signal(t, syscall.SIGTERM)
	awaitEnd(t, claude)
	u.assertNotDone(t)
	write()
	s := r.end(t, u).one(t, "cancelled")
	r.assertNothingLeft(t)
	switch s.Counts {
	case counts{Opened: 1}:
		r.assertProposed(t, quieterDiskBranch, r.proposal())
		r.assertAudited(t, "opened")
	case counts{Failed: 1}: // on a machine so busy that the writer lost its patience, 20 seconds, while it was held
		r.assertEmpty(t)
	default:
		t.Errorf("recorded %+v", s)
	}
	r.assertSettles(t, false)
}

// assertSettles holds that after `pr resume` there is a pull request with its branch, or neither, and that the same
// proposal then comes to one. With cut, the writer was killed while a request was on its way: what arrives after its
// death may leave a branch until the same is proposed again.
func (r *rig) assertSettles(t *testing.T, cut bool) {
	t.Helper()
	r.does(t, "pr", "resume")
	branches, prs := r.branches(t), r.opened(t, r.container)
	late := cut && prs == 0 && len(branches) == 1
	if len(branches) != prs && !late || prs > 1 {
		t.Errorf("after pr resume there are branches %v and %d pull requests", branches, prs)
	}
	file := filepath.Join(r.world.vars["CLAUDEOPS_REPOS_DIR"], "again.json")
	must.Do(t, os.WriteFile(file, []byte(encode(t, r.proposal())), 0o644))
	r.does(t, "pr", "create", "--tier", "2", "--from", "/repos/again.json") // the same again
	if prs := r.opened(t, r.container); prs != 1 {
		t.Errorf("there are %d pull requests in the end, want one", prs)
	}
	r.assertProposed(t, quieterDiskBranch, r.proposal())
	_ = r.audited(t)
}

// What kills the supervisor kills its agent, and cuts what it wrote: the next session closes the record, removes the
// folders, and what was begun is settled.
func sessionWhoseSupervisorIsKilled(t *testing.T, r *rig) {
	writing, write := r.hold(t, r.world)
	u := r.begin(t, scriptedSession(use("create_pr", r.proposal())), "--tier", "2")
	writing(u)
	claude, server, reaper := r.one(t, "claude -p"), r.one(t, "/app/claudeops-connect"), r.one(t,
		"claudeops session-reaper")
	r.signal(t, syscall.SIGKILL)
	awaitEnd(t, claude)
	awaitEnd(t, server)
	awaitEnd(t, reaper)
	write()
	if got := r.end(t, u); got.code != 137 || got.stdout != "" {
		t.Errorf("exit %d: %s%s", got.code, got.stdout, got.stderr)
	}
	for _, pid := range r.running("") {
		t.Errorf("left running: %s", proc(pid, "cmdline"))
	}
	left := r.exec(t, nil, "ls", "-A", "/tmp")
	names := slices.DeleteFunc(strings.Fields(left.stdout), func(name string) bool {
		// of a git command that was cut off in the middle of a commit; it goes a day later
		if strings.HasPrefix(name, "claudeops-git-") {
			r.removeAsOperator(t, "/tmp/"+name)
			return true
		}
		return twoUsers() && strings.HasSuffix(name, "-private")
	})
	if len(names) != 2 || !strings.HasPrefix(names[0], "claudeops-door-") {
		t.Fatalf("the session's folders are not there for the next one to remove: %+v", left)
	}
	id, ok := strings.CutPrefix(names[1], "claudeops-session-")
	if !ok {
		t.Fatalf("the session's folder is not there for the next one to remove: %+v", left)
	}
	if got := r.exec(t, nil, "find", "/tmp", "-name", "mcp.json"); got.stdout != "" {
		t.Errorf("the configuration is still there: %s", got.stdout)
	}
	next := r.run(t, scriptedSession(), "--tier", "1")
	next.one(t, "succeeded")
	if !strings.Contains(next.stderr, "interrupted") || !strings.Contains(next.stderr, id) {
		t.Errorf("the next run does not say that %s was interrupted: %s", id, next.stderr)
	}
	r.assertSettles(t, true)
}

// removeAsOperator removes a folder of claudeops's own user. The container's shell is root without the right to pass
// over modes where agents have a user of their own.
func (r *rig) removeAsOperator(t *testing.T, folder string) {
	t.Helper()
	command := []string{"rm", "-r", folder}
	if twoUsers() {
		command = append([]string{"setpriv", "--reuid", "10001", "--regid", "10001", "--clear-groups"}, command...)
	}
	if got := r.exec(t, nil, command...); got.code != 0 {
		t.Errorf("%s cannot be removed: %s", folder, got.stderr)
	}
}

// lookScript is an attack by an agent with a shell: it prints environment and arguments of every process that it may
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
		must.Do(t, os.WriteFile(filepath.Join(repos, name), []byte(text), 0o644))
	}
	pipe := filepath.Join(repos, "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o644))
	r.env["GITHUB_TOKEN"], r.env["GITHUB_TOKEN_FILE"] = forgeToken, ""
	r.env["CLAUDEOPS_AGENT_TOOLS"] = "Bash(cat *),Bash(sh /repos/look.sh)"
	permitted := []reply{bash("cat /repos/note"), bash("sh /repos/look.sh")}
	forbidden := []reply{
		bash("cat /run/secrets/claudeops_webhook_secret"), bash("cat /run/secret?/claudeops_webhook_secret"),
		bash("cat /state/claudeops.db"),
		bash("cat /stat?/claudeops.db"), bash("cat /proc/self/environ"), bash("cat /proc/*/environ"),
		bash("cat /tmp/*/private/settings.json"),
		bash("env"), read("/run/secrets/claudeops_webhook_secret"), read("/state/claudeops.db"), read("/proc/self/environ"),
		read("/app/.claude/mcp.json"), free("Write", map[string]any{"file_path": "/repos/x", "content": "x"}),
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
	must.Do(t, err)
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
