//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// exposure is a file of ours that is open to agents.
type exposure struct {
	name string
	env  map[string]string
	open func(w *peopleWorld) // opens it
	says []string             // $DIR is the world's folder
}

// agent is a user that owns nothing.
const agent = 54321

func exposures() []exposure {
	chmod := func(name string, mode os.FileMode) func(*peopleWorld) {
		return func(w *peopleWorld) {
			must.Do(w, os.Chmod(filepath.Join(w.dir, name), mode))
		}
	}
	policy := map[string]string{"CLAUDEOPS_POLICY": "$DIR/narrow.yaml"}
	prompts := map[string]string{"CLAUDEOPS_PROMPTS_DIR": "$DIR/prompts"}
	scripts := map[string]string{"CLAUDEOPS_SESSION_TOOLSETS": "pr,scripts", "CLAUDEOPS_SCRIPTS": "$DIR/scripts.yaml"}
	secret := map[string]string{"CLAUDEOPS_WEBHOOK_SECRET_FILE": "$DIR/hook"}
	home := map[string]string{"HOME": "$DIR/home"}
	all := []exposure{
		{"the policy", policy, chmod("narrow.yaml", 0o666),
			[]string{"the policy file: $DIR/narrow.yaml", "by everybody (mode 0666, owner", "chmod o-w '$DIR/narrow.yaml'"}},
		{"the folder of the environment file", home, chmod("home/.config/claudeops", 0o777),
			[]string{"the environment file: $DIR/home/.config/claudeops", "chmod o-w '$DIR/home/.config/claudeops'"}},
		{"the state folder", nil, chmod("state", 0o777), []string{"the state folder: $DIR/state", "chmod o-w '$DIR/state'"}},
		{"the local root", nil, chmod("root", 0o777), []string{"the folder of local repositories: $DIR/root"}},
		{"a prompt", prompts, chmod("prompts/tier1-observe.md", 0o666),
			[]string{"the prompts: $DIR/prompts/tier1-observe.md"}},
		{"the settings of scripts", scripts, chmod("scripts.yaml", 0o666),
			[]string{"the settings of scripts: $DIR/scripts.yaml"}},
		{"a script", scripts, chmod("agent-scripts/up.sh", 0o777), []string{"the scripts: $DIR/agent-scripts/up.sh"}},
		{"the file of a secret", secret, chmod("hook", 0o602), []string{"the file of a secret: $DIR/hook"}},
	}
	if os.Getuid() != 0 {
		return all // only root can give files to other users, or start agents as one
	}
	user := func(more map[string]string) map[string]string {
		env := map[string]string{"CLAUDEOPS_BOUNDARY": "user", "CLAUDEOPS_AGENT_USER": "54321:54321"}
		for name, value := range more {
			env[name] = value
		}
		return env
	}
	chown := func(name string, uid, gid int, mode os.FileMode) func(*peopleWorld) {
		return func(w *peopleWorld) {
			must.Do(w, os.Chown(filepath.Join(w.dir, name), uid, gid))
			chmod(name, mode)(w)
		}
	}
	return append(all,
		exposure{"the policy belongs to the agents' user", user(policy), chown("narrow.yaml", agent, 0, 0o444),
			[]string{"belongs to user 54321 (mode 0444)", "chown 0 '$DIR/narrow.yaml'", "agents, which run as 54321"}},
		exposure{"the environment file belongs to the agents' user", user(home),
			chown("home/.config/claudeops/environment", agent, 0, 0o400),
			[]string{"the environment file: $DIR/home/.config/claudeops/environment belongs to user 54321"}},
		exposure{"their group may write the state folder", user(nil), chown("state", 0, agent, 0o770),
			[]string{"by group 54321 (mode 0770, owner 0)", "chmod g-w"}},
		exposure{"branches of a local repository belong to the agents' user", user(nil),
			chown("root/demo/home.git/refs/heads", agent, 0, 0o755),
			[]string{"a local repository: $DIR/root/demo/home.git/refs/heads belongs to user 54321"}},
	)
}

// TestNoSessionStartsWhileAgentsCouldChangeWhatIsOurs opens files and folders to others, by real modes and owners.
func TestNoSessionStartsWhileAgentsCouldChangeWhatIsOurs(t *testing.T) {
	t.Parallel()
	for _, e := range exposures() {
		t.Run(e.name, e.keepsSessionsFromStarting)
	}
}

func (e exposure) keepsSessionsFromStarting(t *testing.T) {
	t.Parallel()
	w := exposedWorld(t, e.env)
	e.open(w)
	out, exit := w.command(lookupIn(w.env), "run", "--tier", "1", "--json")
	if exit != fault.Misconfigured.ExitCode() || !strings.Contains(out, "no session may start") {
		t.Errorf("exit code %d: %s", exit, out)
	}
	for _, want := range e.says {
		if want = strings.ReplaceAll(want, "$DIR", w.dir); !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	if out, _ := w.command(lookupIn(w.env), "doctor"); !regexp.MustCompile(`problem +modes and owners .*\n +it stops agents' sessions`).MatchString(out) {
		t.Errorf("doctor says nothing: %s", out)
	}
	w.wantOneRefusal()
}

// wantOneRefusal looks for one row of a refused start, and nothing else that has changed.
func (w *peopleWorld) wantOneRefusal() {
	w.Helper()
	must.Do(w, os.Chmod(filepath.Join(w.dir, "state"), 0o700))
	var begun []sessions.Record
	var rows []record.RecordedAttempt
	w.inspect(func(s *store.Store) (err error) {
		begun, err = s.AgentSessions.Sessions(w.Context(), sessions.Query{})
		if err == nil {
			rows, err = s.Audit.Page(w.Context(), record.AuditQuery{})
		}
		return err
	})
	if len(begun) != 0 {
		w.Errorf("a session was begun: %v", begun)
	}
	if len(rows) != rowsOfSeed+1 || rows[0].Action != "session.start" || rows[0].Code != fault.Misconfigured {
		w.Errorf("%d rows, the last %v", len(rows), rows[0])
	}
	if rows[0].Caller == "schedule" {
		return // effect is for what people do
	}
	before := effectOfNothing(w.T)
	if got := w.effect(""); strings.Join(got.Heads, "") != strings.Join(before.Heads, "") ||
		strings.Join(got.Pulls, "") != strings.Join(before.Pulls, "") {
		w.Errorf("something was written: %+v", got)
	}
}

// exposedWorld is a world with files for every setting, none of which is open to others.
func exposedWorld(t *testing.T, env map[string]string) *peopleWorld {
	t.Helper()
	w := newPeopleWorld(t, env)
	for name, text := range map[string]string{
		"narrow.yaml": "version: 1\n", "hook": "0123456789abcdef0123", "scripts.yaml": "agent_scripts_dir: " +
			filepath.Join(w.dir, "agent-scripts") + "\n",
		"agent-scripts/up.sh": "#!/bin/sh\nuptime\n", "prompts/tier1-observe.md": "# Observe\n",
		"home/.config/claudeops/environment": "CLAUDEOPS_TIER=2\n",
	} {
		path := filepath.Join(w.dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for _, dir := range []string{filepath.Dir(w.dir), w.dir} { // otherwise no other user can reach the files
		must.Do(t, os.Chmod(dir, 0o755))
	}
	if problems := files.FindModeProblems(files.ModeUser{AnyOwner: true},
		[]files.ModeSubject{{What: "the world", Path: w.dir, Tree: true}}); len(problems) > 0 {
		t.Fatalf("the world is open already: %v", problems)
	}
	return w
}

func TestAScheduleIsNotServedWhileNoSessionCouldStart(t *testing.T) {
	t.Parallel()
	w := exposedWorld(t, map[string]string{"CLAUDEOPS_POLICY": "$DIR/narrow.yaml", "CLAUDEOPS_INTERVAL": "1h"})
	must.Do(t, os.Chmod(filepath.Join(w.dir, "narrow.yaml"), 0o666))
	out, exit := w.command(lookupIn(w.env), "serve")
	if exit != fault.Misconfigured.ExitCode() ||
		!strings.Contains(out, "sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start") ||
		!strings.Contains(out, "chmod o-w") {
		t.Errorf("exit code %d: %s", exit, out)
	}
	w.wantOneRefusal()
}
