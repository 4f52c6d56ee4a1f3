//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The tokens of these tests' operator. An agent must never see them.
const (
	forgeToken    = "tok-forge-5b1d7e90c2a4"
	webhookSecret = "tok-mark-00112233445566778899aabbccddeeff"
)

// sessions is what `claudeops run --json` prints.
type sessions struct {
	Sessions []recorded `json:"items"`
}

// recorded is the record of a session.
type recorded struct {
	ID             string   `json:"id"`
	Tier           int      `json:"tier"`
	DryRun         bool     `json:"dry_run"`
	State          string   `json:"state"`
	Toolsets       []string `json:"toolsets"`
	Reason         string   `json:"reason"`
	Claude         string   `json:"claude_version"`
	Connected      bool     `json:"connected"`
	Parent         string   `json:"parent"`
	Next           string   `json:"next"`
	Escalation     string   `json:"escalation"`
	Denied         int      `json:"denied"`
	Denials        []string `json:"denials"`
	ToolCalls      int      `json:"tool_calls"`
	BadLines       int      `json:"bad_lines"`
	Cost           float64  `json:"cost_usd"`
	CostSource     string   `json:"cost_source"`
	Output         int64    `json:"output_tokens"`
	Handoff        *handoff `json:"handoff"`
	Received       *handoff `json:"received"`
	HandoffProblem string   `json:"handoff_problem"`
	Report         string   `json:"report"`
	Counts         counts   `json:"counts"`
	Boundary       struct {
		Kind string `json:"kind"`
		Net  string `json:"net"`
	} `json:"boundary"`
}

// counts are the attempts at proposals in a session.
type counts struct {
	Opened  int `json:"opened"`
	Reused  int `json:"reused"`
	DryRun  int `json:"dry_run"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
}

// handoff is what a session leaves for a higher tier.
type handoff struct {
	Version  int      `json:"version"`
	Tier     int      `json:"recommended_tier"`
	Services []string `json:"services"`
	Findings []found  `json:"findings"`
}

// found is one finding of a handoff.
type found struct{ Key, Text string }

// operator runs the real CLI under `claudeops run` against a scripted model.
type operator struct {
	*world
	temp string
}

func newOperator(t *testing.T) operator {
	t.Helper()
	o := operator{newWorld(t, "1"), t.TempDir()}
	o.vars["CLAUDEOPS_MAX_TIER"] = "2"
	o.vars["CLAUDEOPS_DEFAULT_PROVIDER"] = "local"
	o.vars["CLAUDEOPS_CLAUDE_BIN"] = installed(t, "@anthropic-ai/claude-code-linux-*/claude")
	o.vars["GITHUB_TOKEN"] = forgeToken
	o.vars["CLAUDEOPS_MARK_KEY"] = strings.Repeat("0123456789abcdef", 4)
	o.vars["CLAUDEOPS_WEBHOOK_SECRET"] = webhookSecret
	return o
}

// environment has a folder for temporary files that holds nothing else.
func (o operator) environment(url string) []string {
	return append(o.world.environment("ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=dummy-model-key"), "TMPDIR="+o.temp)
}

// run runs claudeops run to its end.
func (o operator) run(t *testing.T, m sessionModel, args ...string) (sessions, outcome) {
	t.Helper()
	stub := newSessionStub(t, m)
	got := run(t, program{
		path: claudeops(t), args: append([]string{"run", "--json"}, args...), dir: t.TempDir(), env: o.environment(stub.URL),
	})
	for _, token := range o.tokens() {
		if strings.Contains(got.stdout+got.stderr, token) || strings.Contains(stub.seen(t).everything(), token) {
			t.Errorf("the token %s got out", token)
		}
	}
	if left, err := os.ReadDir(o.temp); err != nil || len(left) > 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", left, err)
	}
	return decode[sessions](t, got.stdout), got
}

func (o operator) tokens() []string {
	return []string{forgeToken, webhookSecret, o.vars["CLAUDEOPS_MARK_KEY"]}
}

// newSessionStub is a Messages API for agents that have our tools at once: with --tools they search for none.
func newSessionStub(t *testing.T, m sessionModel) *messagesStub {
	s := newMessagesStub(t, nil)
	s.asked = m
	return s
}

// sessionModel stands in for the model of a session: it sees all that it was asked, and the results of its calls so
// far.
type sessionModel func(asked string, results []seenResult) reply

func scriptedSession(replies ...reply) sessionModel {
	m := scripted(replies...)
	return func(_ string, results []seenResult) reply { return m(results) }
}

// free calls a tool of the CLI itself.
func free(tool string, args any) reply { return reply{tool: tool, args: args} }

func TestASessionOpensAPullRequestThatItsRecordShows(t *testing.T) {
	o := newOperator(t)
	p := quieterDisk()
	got, out := o.run(t, scriptedSession(
		use("create_pr", p),
		free("Read", map[string]any{"file_path": filepath.Join(o.vars["CLAUDEOPS_STATE_DIR"], "claudeops.db")}),
		free("Bash", map[string]any{"command": "env"}),
		free("Write", map[string]any{"file_path": filepath.Join(o.vars["CLAUDEOPS_REPOS_DIR"], "x"), "content": "x"}),
	), "--tier", "2")
	if out.code != 0 || len(got.Sessions) != 1 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	if s := got.Sessions[0]; s.State != "succeeded" || s.Tier != 2 || s.Counts.Opened != 1 || s.ToolCalls != 4 {
		t.Errorf("recorded %+v", s)
	}
	o.assertProposed(t, quieterDiskBranch, p)
	if _, err := os.Stat(filepath.Join(o.vars["CLAUDEOPS_REPOS_DIR"], "x")); err == nil {
		t.Error("the agent wrote into a working copy")
	}
}

// The agent asks for tier 3; it gets what the operator permits, in a session that knows where it comes from.
func TestAHandoffStartsTheNextTierWithinTheOperatorsCap(t *testing.T) {
	o := newOperator(t)
	p := quieterDisk()
	handoff := regexp.MustCompile(`write the handoff to (/\S+/handoff\.json)`)
	got, out := o.run(t, func(asked string, results []seenResult) reply {
		switch escalated := strings.Contains(asked, "untrusted_handoff"); {
		case len(results) == 0:
			return use("create_pr", p)
		case len(results) == 1 && !escalated:
			text := `{"version":1,"recommended_tier":3,"services":["disk"],"findings":["warned too late"]}`
			return free("Write", map[string]any{"file_path": handoff.FindStringSubmatch(asked)[1], "content": text})
		}
		return say("done")
	}, "--tier", "1")
	if out.code != 0 || len(got.Sessions) != 2 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	first, second := got.Sessions[0], got.Sessions[1]
	if first.Counts.Refused != 1 || second.Parent != first.ID || second.Tier != 2 || second.Counts.Opened != 1 ||
		!strings.Contains(first.Escalation, "CLAUDEOPS_MAX_TIER is 2") {
		t.Errorf("recorded %+v", got)
	}
	o.assertProposed(t, quieterDiskBranch, p)
}

// While the agent runs, neither its process nor any that it starts, the connector of our server among them, holds a
// token in environment, arguments or memory. A signal in the middle then leaves nothing: no process, no folder, and a
// record that says so.
func TestTheAgentHoldsNoTokenAndASignalLeavesNothing(t *testing.T) {
	o := newOperator(t)
	reached, release := make(chan struct{}), make(chan struct{})
	stub := newSessionStub(t, func(_ string, results []seenResult) reply {
		if len(results) == 1 {
			close(reached)
			<-release
		}
		return use("list_prs", ofRepository())
	})
	cmd := command(t, program{path: claudeops(t), args: []string{"run", "--json", "--tier", "2"}, dir: t.TempDir(),
		env: o.environment(stub.URL)})
	var stdout strings.Builder
	cmd.Stdout = &stdout
	launch(t, cmd)
	<-reached
	agents := 0
	reapers := childrenOf(cmd.Process.Pid)
	if len(reapers) != 1 || !strings.Contains(proc(reapers[0], "cmdline"), "session-reaper") {
		t.Fatalf("the run has the children %v, want one reaper", reapers)
	}
	for _, pid := range childrenOf(reapers[0]) {
		agents++
		o.assertNoToken(t, pid)
		if !memoryOf(t, pid)([]byte("dummy-model-key")) {
			t.Error("the agent's memory does not hold its own key, so it was not looked at")
		}
		for _, server := range childrenOf(pid) {
			if !strings.Contains(proc(server, "cmdline"), "claudeops-connect") {
				t.Errorf("the agent's child %d is not our connector: %s", server, proc(server, "cmdline"))
			}
			o.assertNoToken(t, server)
		}
	}
	if agents != 1 {
		t.Errorf("%d agents run, want one", agents)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code := exitCode(t, cmd)
	close(release)
	var got sessions
	if err := json.Unmarshal([]byte(stdout.String()), &got); err != nil || code != 1 || len(got.Sessions) != 1 ||
		got.Sessions[0].State != "cancelled" || !strings.Contains(got.Sessions[0].Reason, "signal") {
		t.Fatalf("exit %d, %v: %s", code, err, stdout.String())
	}
	if left, err := os.ReadDir(o.temp); err != nil || len(left) > 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", left, err)
	}
	if pids := carrying("CLAUDEOPS_RUN=" + got.Sessions[0].ID); len(pids) > 0 {
		t.Errorf("processes outlived the session: %v", pids)
	}
	o.assertUntouched(t)
}

func (o operator) assertNoToken(t *testing.T, pid int) {
	t.Helper()
	memory := memoryOf(t, pid)
	for _, token := range o.tokens() {
		if memory([]byte(token)) {
			t.Errorf("the memory of %d holds a token", pid)
		}
	}
	for _, file := range []string{"environ", "cmdline"} {
		text := proc(pid, file)
		if text == "" {
			t.Errorf("/proc/%d/%s is empty", pid, file)
		}
		for _, token := range o.tokens() {
			if strings.Contains(text, token) {
				t.Errorf("/proc/%d/%s holds a token", pid, file)
			}
		}
	}
}

func proc(pid int, file string) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(text), "\x00", "\n")
}

func childrenOf(pid int) []int {
	var out []int
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/children")) // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

// carrying returns the processes with the entry in their environment.
func carrying(entry string) []int {
	var out []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && slices.Contains(strings.Split(proc(pid, "environ"), "\n"), entry) {
			out = append(out, pid)
		}
	}
	return out
}
