//go:build e2e && linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/deploytest"
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
		{name: "there is no CLI", env: map[string]string{"CLAUDEOPS_CLAUDE_BIN": "/usr/local/bin/nothing"}, state: "failed",
			reason: "CLAUDEOPS_CLAUDE_BIN"},
		{name: "the CLI is too old", claude: "#!/bin/sh\necho '2.1.328 (Claude Code)'\n", state: "failed",
			reason: "2.1.328, and 2.1.329 or newer is needed"},
		{name: "the prompt is missing", env: map[string]string{"CLAUDEOPS_PROMPTS_DIR": "/repos"}, state: "failed",
			reason: "tier1-observe.md cannot be read"},
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
	for _, f := range sessionFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, img, forges()["local"], nil)
			f.play(t, r)
			r.assertEmpty(t)
			r.assertAudited(t)
			r.close(t)
		})
	}
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
	stub.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if f.api == nil {
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
	r.refused(t, 2, "the state folder /state cannot be written")
	if branches := r.branches(t); len(branches) > 0 {
		t.Errorf("branches were made: %v", branches)
	}
}

// fill writes to the state folder until the disk is full, and returns what frees it.
func (r *rig) fill(t *testing.T) (free func()) {
	t.Helper()
	name := r.inside(t, "/state/filling")
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
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
	r.refused(t, 1, "is full; free some space")
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
	if got.code != 1 || !strings.Contains(got.stderr+got.stdout, "is full; free some space") {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	r.assertNothingLeft(t)
	if branches := r.branches(t); len(branches) > 0 {
		t.Errorf("without a record there are %v", branches)
	}
	free()
	r.assertSettles(t, false)
}
