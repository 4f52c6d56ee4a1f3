//go:build e2e && linux

package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The tokens of these tests' operator. An agent must never see them.
const (
	forgeToken    = "tok-forge-5b1d7e90c2a4"
	webhookSecret = "tok-mark-00112233445566778899aabbccddeeff"
)

// sessions is the output of `claudeops run --json`.
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

// handoff is a session's handoff to a higher tier.
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
	o.vars["CLAUDEOPS_CLAUDE_BIN"] = theCLI(t)
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

// While the agent runs, neither its process nor any that it starts, the connector of our server among them, holds a
// token in environment, arguments or memory. A signal in the middle then leaves nothing: no process, no folder, and a
// record that says so.
func TestTheAgentHoldsNoTokenAndASignalLeavesNothing(t *testing.T) {
	o := newOperator(t)
	reached, release := make(chan struct{}), newGate()
	stub := newSessionStub(t, func(_ string, results []seenResult) reply {
		if len(results) == 1 {
			close(reached)
			<-release.closed
		}
		return use("list_prs", ofRepository())
	})
	t.Cleanup(release.open) // without it the model would wait for ever
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
		if holds := o.assertNoToken(t, pid); !holds("dummy-model-key") {
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
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	code := exitCode(t, cmd)
	release.open()
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

// assertNoToken returns whether a text is in the memory of the process.
func (o operator) assertNoToken(t *testing.T, pid int) (holds func(text string) bool) {
	t.Helper()
	holds = memoryOf(t, pid)
	for _, token := range o.tokens() {
		if holds(token) {
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
	return holds
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

// handoffFile is where the first message lets an agent write its handoff.
func handoffFile(asked string) string {
	_, after, _ := strings.Cut(asked, "write the handoff to ")
	path, _, _ := strings.Cut(after, "handoff.json")
	return path + "handoff.json"
}

// An agent that leaves an unusable handoff is told so after its Write and again when it is about to end, by hooks of
// the real CLI that call this binary. It mends it, and ends with its report once more.
func TestAnAgentHearsOfAnUnusableHandoffAndMendsIt(t *testing.T) {
	o := newOperator(t)
	const report = "## Status\nattention, the disk warning comes too late"
	told := ""
	got, out := o.run(t, func(asked string, results []seenResult) reply {
		write := func(text string) reply {
			return free("Write", map[string]any{"file_path": handoffFile(asked), "content": text})
		}
		switch {
		case strings.Contains(asked, "untrusted_handoff"):
			return say("investigated")
		case len(results) == 0:
			return write("I found that the disk warning comes too late.")
		case len(results) == 1 && !strings.Contains(asked, "Stop hook feedback"):
			told = asked
			return say("this report comes before the handoff is mended")
		case len(results) == 1:
			return write(
				"```json\n{\"version\":\"1\",\"recommended_tier\":\"2\",\"findings\":[{\"key\":\"disk-late\",\"text\":\"warned " +
					"too late\"}]}\n```")
		}
		return say(report)
	}, "--tier", "1")
	if out.code != 0 || len(got.Sessions) != 2 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	const unusable = "handoff.json cannot be used as a handoff: the handoff is not a JSON object"
	if !strings.Contains(told, unusable) {
		t.Errorf("after its Write the agent was not told %q", unusable)
	}
	first := got.Sessions[0]
	if first.State != "succeeded" || first.HandoffProblem != "" || first.Report != report ||
		!strings.HasPrefix(first.Escalation, "escalated to tier 2") ||
		len(first.Handoff.Findings) != 1 || first.Handoff.Findings[0] != (found{"disk-late", "warned too late"}) {
		t.Errorf("recorded %+v", first)
	}
}

// An agent that does not listen is not kept for ever, and its session has not succeeded.
func TestASessionWhoseHandoffStaysUnusableFails(t *testing.T) {
	o := newOperator(t)
	turns := 0
	got, out := o.run(t, func(asked string, results []seenResult) reply {
		if turns++; len(results) == 0 {
			return free("Write", map[string]any{"file_path": handoffFile(asked), "content": `{"recommended_tier":2}`})
		}
		return say("done")
	}, "--tier", "1")
	if out.code != 1 || len(got.Sessions) != 1 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	if s := got.Sessions[0]; s.State != "failed" || !strings.Contains(s.Reason, "`findings` has no entry") ||
		s.Next != "" || turns != 3 {
		t.Errorf("after %d turns recorded %+v", turns, s)
	}
}

// cycle plays the sessions that begin with one of tier 1, which hands a finding over. What a session of tier 2 does is
// up to acts. It notes what the session of each tier was asked first.
func (o operator) cycle(t *testing.T, key, text string, acts model) (ran []recorded, told map[int]string) {
	t.Helper()
	told = map[int]string{}
	got, out := o.run(t, func(asked string, results []seenResult) reply {
		write := func(file, text string) reply {
			return free("Write", map[string]any{"file_path": strings.Replace(handoffFile(asked), "handoff.json", file, 1),
				"content": text})
		}
		tier := 1
		if strings.Contains(asked, "<untrusted_handoff>") {
			tier = 2
		}
		told[tier] = cmp.Or(told[tier], asked)
		switch {
		case slices.ContainsFunc(results, func(r seenResult) bool { return r.isError }):
			t.Errorf("a call of tier %d was refused: %+v", tier, results)
		case tier == 2:
			return acts(results)
		case len(results) == 0:
			return write("handoff.json", `{"version":1,"recommended_tier":2,"services":["disk"],"findings":[{"key":"`+key+
				`","text":"`+text+`"}]}`)
		case len(results) == 1:
			return write("journal.txt", "checks/disk.md: "+text)
		}
		return say("## Status\nattention: " + text)
	}, "--tier", "1")
	if out.code != 0 || len(got.Sessions) == 0 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	return got.Sessions, told
}

// acting makes calls, one after the other, and reports.
func acting(report string, calls ...model) model {
	return func(results []seenResult) reply {
		if n := len(results); n < len(calls) {
			return calls[n](results)
		}
		return say("## Proposal\n" + report)
	}
}

func assertTold(t *testing.T, told string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(told, word) {
			t.Errorf("the agent was not told %q", word)
		}
	}
}

// The story of one finding, played by the real CLI: each session is told of those before it, and knows what to do from
// its first message and its tools. A finding that was handed over starts no second session before a person has said
// something about what came of it.
func TestAFindingIsHandedOverOnceReviewedRevisedAndMerged(t *testing.T) {
	o := newOperator(t)
	const late, review = "disk-warns-late", "pr-1-review"
	first, told := o.cycle(t, late, "at 91 % on Monday", acting("opened #1", func([]seenResult) reply {
		return use("create_pr", edited(nil, "Warn at 90 %.", "Warn at 85 %."))
	}))
	if len(first) != 2 || first[1].Counts.Opened != 1 || !strings.HasPrefix(first[0].Escalation, "escalated to tier 2") {
		t.Fatalf("recorded %+v", first)
	}
	assertTold(t, told[1], "at most 60 turns, 30m", "No shell command is permitted", "checks/*.md, playbooks/*.md")
	assertTold(t, told[2], "at most 3 files in one pull request of your tier", late)
	o.assertDisk(t, quieterDiskBranch, "Warn at 85 %.")

	again, told := o.cycle(t, late, "at 93 % on Tuesday", acting(""))
	if len(again) != 1 || again[0].Next != "" ||
		!strings.Contains(again[0].Escalation, "still open: "+late+" (tier 2 since ") ||
		!strings.Contains(again[0].Escalation, "pull request demo/home-cluster#1") {
		t.Fatalf("recorded %+v", again)
	}
	assertTold(t, told[1], "attention: at 91 % on Monday", "opened #1", "untrusted_journal",
		"Z checks/disk.md: at 91 % on Monday", `demo/home-cluster#1`, `\"state\": \"open\"`, "untrusted_open_findings")

	const words = "Say at which figure it becomes urgent."
	o.review(t, "request-changes", "--comment", words)
	revised, told := o.cycle(t, review, "it is to say more", acting("revised #1", func([]seenResult) reply {
		status := ofFirstPR()
		status["include"] = []string{"files"}
		return use("get_pr_status", status)
	}, func(results []seenResult) reply {
		revision := edited(1, "Warn at 85 %.", "Warn at 85 %, urgent at 95 %.")
		if sha := regexp.MustCompile(`"base_sha":"([0-9a-f]{40})"`).FindStringSubmatch(results[0].text); sha != nil {
			revision["files"].([]any)[0].(map[string]any)["base_sha"] = sha[1]
		}
		return use("create_pr", revision)
	}))
	if len(revised) != 2 || !strings.Contains(revised[1].Report, "revised #1") {
		t.Fatalf("the cycle after the review is recorded as %+v", revised)
	}
	assertTold(t, told[1], "changes_requested", words)
	o.assertDisk(t, quieterDiskBranch, "Warn at 85 %, urgent at 95 %.")
	if got := strings.TrimSpace(o.git(t, "", "rev-list", "--count", "main.."+quieterDiskBranch)); got != "2" {
		t.Errorf("it has %s commits of its own, want 2", got)
	}
	if answered, _ := o.cycle(t, review, "it says more", acting("")); len(answered) != 1 {
		t.Errorf("after the revision, before a person looked, the cycle is recorded as %+v", answered)
	}

	o.review(t, "approve")
	o.review(t, "merge")
	last, told := o.cycle(t, late, "at 95 % on Friday", acting("done"))
	if len(last) != 2 {
		t.Errorf("after the merge recorded %+v", last)
	}
	assertTold(t, told[1], `\"state\": \"merged\"`, "attention: it says more", "checks/disk.md: at 93 % on Tuesday")
	o.assertDisk(t, "main", "Warn at 85 %, urgent at 95 %.")
}

// assertDisk holds that nobody made a branch beside that of the change, and what one has in checks/disk.md.
func (o operator) assertDisk(t *testing.T, branch, line string) {
	t.Helper()
	if got := o.branches(t); branch != "main" && !slices.Equal(got, []string{branch}) {
		t.Errorf("branches beside main are %v", got)
	}
	if got := o.git(t, "", "show", branch+":checks/disk.md"); got != "# Disk\n\n"+line+"\n" {
		t.Errorf("%s has %q", branch, got)
	}
}

// review performs a person's action on the first pull request.
func (o operator) review(t *testing.T, verb string, more ...string) {
	t.Helper()
	o.does(t, append([]string{"review", verb, "1", "--repo", "demo/home-cluster"}, more...)...)
}
