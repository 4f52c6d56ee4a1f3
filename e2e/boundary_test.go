//go:build e2e && linux

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The users of machines with a boundary, by the boundary. No account has these numbers; the kernel needs none. Each
// machine has its own, so that what the agents of one do and leave is not taken for that of another beside it.
const (
	agentUser     = 20002 // of an operator who is root
	landlockUser  = 20001 // of operator and agent
	unboundedUser = 20003 // of operator and agent
)

// victimToken stands in the environment of another program of the operator.
const victimToken = "tok-other-71d0a5e3c684"

// secretInFile is a token that stands in a file and, read from there, in the operator's processes.
const secretInFile = "tok-file-9c31aa07be55"

// fortress is an operator's machine on which an agent with a shell does what it wants.
type fortress struct {
	operator
	boundary string
	uid      int      // of the operator's processes
	agent    int      // of the agent's; attacks mark by it what they leave
	served   string   // host:port of the operator's REST
	abstract string   // an abstract socket of the operator's user
	victim   int      // another program of the operator
	earlier  []string // the socket and the ticket of an earlier session
}

// newFortress makes a machine whose sessions run behind the boundary, at tier 1 in a dry run.
func newFortress(t *testing.T, boundary string) *fortress {
	t.Helper()
	f := &fortress{operator: newOperator(t), boundary: boundary}
	f.run(t, scriptedSession(use("create_pr", quieterDisk())), "--tier", "2")
	dir := filepath.Dir(f.vars["CLAUDEOPS_STATE_DIR"])
	operationtest.WriteFiles(t, dir, map[string]string{
		"policy.yaml": "version: 1\n", "secrets/forge": secretInFile + "\n", "repos/cluster/CLAUDE-OPS.md": "# Cluster\n",
		"prompts/tier1-observe.md": "Look.\n", "prompts/tier2-investigate.md": "Look.\n",
		"prompts/tier3-remediate.md": "Look.\n",
	})
	maps.Copy(f.vars, map[string]string{
		"CLAUDEOPS_BOUNDARY": boundary, "CLAUDEOPS_DRY_RUN": "true", "CLAUDEOPS_AGENT_TOOLS": "Bash(*)",
		"CLAUDEOPS_MAX_TURNS": "200",
		"CLAUDEOPS_POLICY":    filepath.Join(dir, "policy.yaml"), "CLAUDEOPS_PROMPTS_DIR": filepath.Join(dir, "prompts"),
		"GITEA_URL": "http://127.0.0.1:1", "GITEA_TOKEN_FILE": filepath.Join(dir, "secrets/forge"),
		"CLAUDEOPS_FORGE_PLAIN_HTTP": "true",
	})
	switch boundary {
	case "landlock":
		f.uid, f.agent = landlockUser, landlockUser
	case "none":
		f.uid, f.agent = unboundedUser, unboundedUser
	case "user":
		f.agent, f.vars["CLAUDEOPS_AGENT_USER"] = agentUser, fmt.Sprintf("%d:%d", agentUser, agentUser)
		if err := os.Chmod(f.temp, os.ModeSticky|0o777); err != nil { // #nosec G302: as /tmp is
			t.Fatal(err)
		}
	}
	f.own(t, dir, f.temp)
	if err := os.Chmod(filepath.Dir(f.temp), 0o755); err != nil { // #nosec G302: the agent's user finds its folder below
		t.Fatal(err)
	}
	for _, private := range []string{"secrets", "state", "root"} {
		must.Do(t, os.Chmod(filepath.Join(dir, private), 0o700))
	}
	f.listenAbstract(t)
	f.victim = f.startVictim(t)
	return f
}

// own gives everything in the folders to the operator's user.
func (f *fortress) own(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		must.Do(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, f.uid, f.uid)
		}))
	}
}

// listenAbstract is another program of the operator that listens on an abstract socket and accepts every client.
func (f *fortress) listenAbstract(t *testing.T) {
	t.Helper()
	f.abstract = fmt.Sprintf("claudeops-test-%d", time.Now().UnixNano())
	l := must.Get(net.Listen("unix", "@"+f.abstract))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
}

// startVictim starts another program of the operator.
func (f *fortress) startVictim(t *testing.T) int {
	t.Helper()
	cmd := command(t, program{path: "sleep", args: []string{"3600"}, dir: "/",
		env: []string{path(), "TOKEN=" + victimToken}, may: browsing})
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(f.uid), Gid: uint32(f.uid)}
	launch(t, cmd)
	return cmd.Process.Pid
}

// attack is one script of testdata/attacks.
type attack struct{ name, text string }

func attacks(t *testing.T) (out []attack) {
	t.Helper()
	files := must.Get(filepath.Glob("testdata/attacks/*.py"))(t)
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".py"); name != "prelude" {
			out = append(out, attack{name, readFile(t, "testdata/attacks/prelude.py") + readFile(t, file) +
				"\nprint('TRIED:', tried)\n"})
		}
	}
	return out
}

// command is the attack as the agent's shell runs it: what it does stands nowhere in the text that permissions look at.
func (f *fortress) command(t *testing.T, a attack, supervisor int) string {
	t.Helper()
	known := map[string]any{
		"STATE": f.vars["CLAUDEOPS_STATE_DIR"], "ROOT": f.vars["CLAUDEOPS_LOCAL_ROOT"], "REPO": f.repo,
		"POLICY":  f.vars["CLAUDEOPS_POLICY"],
		"PROMPTS": f.vars["CLAUDEOPS_PROMPTS_DIR"], "SECRET": f.vars["GITEA_TOKEN_FILE"],
		"REPOS":  f.vars["CLAUDEOPS_REPOS_DIR"],
		"VICTIM": f.victim, "SUPERVISOR": supervisor, "ADDRESS": f.served, "ABSTRACT": f.abstract, "OPERATOR_HOME": f.home,
		"OPERATOR_TMPDIR": f.temp, "AGENT": f.agent, "OUTLIVED": f.outlived(),
	}
	if len(f.earlier) > 1 {
		known["EARLIER_SOCKET"], known["EARLIER"] = f.earlier[0], f.earlier[1]
	}
	settings := "import os\n"
	for _, name := range slices.Sorted(maps.Keys(known)) {
		settings += fmt.Sprintf("os.environ[%q] = %q\n", name, fmt.Sprint(known[name]))
	}
	settings += fmt.Sprintf("os.environ['BINARY'] = %q\n", claudeops(t))
	return "echo " + base64.StdEncoding.EncodeToString([]byte(settings+a.text)) + " | base64 -d | /usr/bin/python3 - 2>&1"
}

// assault is one session in which each attack was run.
type assault struct {
	results map[string]string // what each attack printed
	record  recorded
	output  string // of the supervisor
}

// opened are the ways that worked, each as "attack: way".
func (a assault) opened() (out []string) {
	for name, text := range a.results {
		for _, line := range strings.Split(text, "\n") {
			if way, found := strings.CutPrefix(line, "OPEN: "); found {
				out = append(out, name+": "+way)
			}
		}
	}
	slices.Sort(out)
	return out
}

// assault runs one session in which the agent runs the attacks, one after the other.
func (f *fortress) assault(t *testing.T, list []attack) assault {
	t.Helper()
	got := assault{results: map[string]string{}}
	started := make(chan int, 1)
	supervisor := 0
	stub := newSessionStub(t, func(_ string, results []seenResult) reply {
		if supervisor == 0 {
			supervisor = <-started
		}
		if n := len(results); n > 0 && n <= len(list) {
			got.results[list[n-1].name] = results[n-1].text
			t.Logf("%s: %.4000s", list[n-1].name, results[n-1].text)
		}
		if len(results) >= len(list) {
			return say("done")
		}
		const attackTime = 10 * time.Minute // the most that the CLI gives
		return free("Bash", map[string]any{"command": f.command(t, list[len(results)], supervisor),
			"timeout": attackTime.Milliseconds()})
	})
	cmd := command(t, program{path: claudeops(t), args: []string{"run", "--json", "--tier", "1"}, dir: f.home,
		env: f.environment(stub.URL), may: browsing})
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(f.uid), Gid: uint32(f.uid)}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	launch(t, cmd)
	started <- cmd.Process.Pid
	code := exitCode(t, cmd)
	got.output = stdout.String() + stderr.String()
	var told sessions
	if err := json.Unmarshal([]byte(stdout.String()), &told); err != nil || len(told.Sessions) != 1 {
		t.Fatalf("exit %d, %v: %s", code, err, got.output)
	}
	got.record = told.Sessions[0]
	t.Logf("%+v", got.record)
	for _, a := range list {
		if !regexp.MustCompile(`(?m)^TRIED: [1-9]`).MatchString(got.results[a.name]) {
			t.Errorf("the attack %s did not run to its end: %s", a.name, got.results[a.name])
		}
	}
	return got
}

// serve runs the operator's REST and dashboard.
func (f *fortress) serve(t *testing.T) {
	t.Helper()
	f.served = strings.TrimPrefix(serveAs(t, f.world, f.uid).url, "http://")
}

// snapshot returns what the agent must not change: every file of the operator but the records, which grow.
func (f *fortress) snapshot(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	dir := filepath.Dir(f.vars["CLAUDEOPS_STATE_DIR"])
	must.Do(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		records := strings.HasPrefix(path, f.vars["CLAUDEOPS_STATE_DIR"])
		if info.Mode().IsRegular() && (!records || filepath.Base(path) == "mark.key") {
			text += " " + readFile(t, path)
		}
		if !records || filepath.Base(path) == "mark.key" {
			out[path] = text
		}
		return nil
	}))
	return out
}

// theft prints what a session could keep for the next one: the path of its socket, and its ticket.
func theft(t *testing.T) attack {
	t.Helper()
	return attack{"theft", readFile(t, "testdata/attacks/prelude.py") + "print(*door())\nprint('TRIED: 1')\n"}
}

// assertWhole holds that nothing is left of the attacks, and that all of the operator's is there.
func (f *fortress) assertWhole(t *testing.T, got assault) {
	t.Helper()
	if got.record.State != "succeeded" && !strings.Contains(got.record.Reason, "handoff") {
		t.Errorf("the session was disturbed: %+v", got.record)
	}
	if got.record.Boundary.Kind != f.boundary {
		t.Errorf("the boundary is recorded as %+v", got.record.Boundary)
	}
	for _, token := range append(f.tokens(), secretInFile, victimToken) {
		if strings.Contains(got.output, token) {
			t.Errorf("the token %s got out", token)
		}
		for name, text := range got.results {
			if strings.Contains(text, token) {
				t.Errorf("the attack %s has the token %s", name, token)
			}
		}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, path := range processes {
		if left := f.outlived().FindString(proc(pidOf(path), "cmdline")); left != "" {
			t.Errorf("a process outlived the session: %s", left)
		}
	}
	if healthy := run(t, program{path: claudeops(t), args: []string{"health", "--addr", f.served}, dir: "/",
		env: []string{path()}}); healthy.code != 0 {
		t.Errorf("the operator's server: %s", healthy.stderr)
	}
	if branches := f.branches(t); !slices.Equal(branches, []string{quieterDiskBranch}) {
		t.Errorf("branches %v, want the operator's alone", branches)
	}
	verified := run(t, program{path: claudeops(t), args: []string{"audit", "verify"}, dir: f.home,
		env: f.environment("http://127.0.0.1:1")})
	if verified.code != 0 {
		t.Errorf("the audit: exit %d: %s%s", verified.code, verified.stdout, verified.stderr)
	}
	if left, err := os.ReadDir(f.temp); err != nil || len(left) > 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", left, err)
	}
	const most = 64 << 20 // a few refused calls take less than 1 MiB
	if size := sizeOf(t, f.vars["CLAUDEOPS_STATE_DIR"]); size > most {
		t.Errorf("the records have grown to %d bytes", size)
	}
}

// outlived matches the commands of processes that the agent has tried to leave behind.
func (f *fortress) outlived() *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`outlived-\w+-%[1]d|sleep 90[0-9]\.%[1]d`, f.agent))
}

// pidOf is the process of a path below /proc.
func pidOf(path string) int {
	pid, _ := strconv.Atoi(strings.Split(path, "/")[2]) // /proc/N/...
	return pid
}

// sizeOf returns the size of the files of a folder, in bytes.
func sizeOf(t *testing.T, folder string) (size int64) {
	t.Helper()
	must.Do(t, filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return size
}

// works are ways that must work where there is no boundary, as "attack: beginning of the way": they show that the
// attacks are attacks.
func works() []string {
	return []string{
		"another_server: server at tier 3", "another_server: server at tier 3 by flags",
		"another_server: server with records of its own",
		"another_server: approve", "another_server: merge", "another_server: token create", "another_server: backup",
		"another_server: audit list",
		"inherited: abstract socket", "inherited: core of the other program",
		"left_behind: System V's memory", "left_behind: System V's semaphores", "left_behind: System V's messages",
		"read_files: read ", "read_files: read by a link ", "read_files: hard link to ", "read_files: mapped ",
		"read_files: path descriptor of ",
		"read_files: copied with cat ", "read_files: renamed ", "read_files: listed ", "read_files: entered ",
		"read_files: listed through dot dot ",
		"read_processes: environ of ", "read_processes: mem of ", "read_processes: process_vm_readv of ",
		"read_processes: ptrace attach of ",
		"read_processes: pidfd_getfd of ", "read_processes: root of ", "read_processes: cwd of ",
		"read_processes: token in the environment of ",
		"signals: signal 0 to ", "signals: SIGCONT to ", "signals: pidfd_send_signal to ", "signals: tgkill of ",
		"signals: rlimit of ", "signals: oom score of ",
		"spawn_race: ",
		"surroundings: working copy", "surroundings: write ", "surroundings: the operator's folder for temporary files",
		"write_records: opened to append ", "write_records: opened to write ", "write_records: a neighbour of ",
		"write_records: mode of ",
		"write_records: times of ", "write_records: records by SQLite", "write_records: git update-ref",
		"write_records: git push",
		"write_records: git hook", "write_records: git object", "write_records: repository moved",
		"write_records: state folder moved",
	}
}

// remains is the beginning of what works behind a boundary all the same: Landlock has no rule for a file's times
// (landlock(7)).
func remains(boundary string) string {
	if boundary == "landlock" {
		return "write_records: times of "
	}
	return "nothing"
}

// An agent with a shell that is restricted by nothing tries what docs/explain/attacks.md says is impossible: each way
// of testdata/attacks. Behind a boundary none works; without one they do.
func TestAnAgentWithAShell(t *testing.T) {
	for _, boundary := range []string{"user", "landlock"} {
		t.Run(boundary, func(t *testing.T) {
			t.Parallel()
			f := newFortress(t, boundary)
			f.serve(t)
			before := f.snapshot(t)
			f.vars["CLAUDEOPS_AGENT_NET"] = "model" // the CLI does with that; the attacks below have the whole network
			first := f.assault(t, []attack{theft(t)})
			delete(f.vars, "CLAUDEOPS_AGENT_NET")
			if !strings.HasSuffix(first.record.Boundary.Net, "; no UDP") {
				t.Errorf("the network of the first session: %+v", first.record.Boundary)
			}
			f.earlier = strings.Fields(first.results["theft"])
			got := f.assault(t, attacks(t))
			opened := slices.DeleteFunc(got.opened(), func(way string) bool { return strings.HasPrefix(way, remains(boundary)) })
			if len(opened) > 0 {
				t.Errorf("%d ways worked:\n%s", len(opened), strings.Join(opened, "\n"))
			}
			if !strings.Contains(got.results["outlive"], "LEFT: True") {
				t.Errorf("no process was left to outlive the session: %s", got.results["outlive"])
			}
			for _, answer := range []string{"tier_denied", "FLOOD ANSWERED: 201", "SOCKET: "} {
				if !strings.Contains(got.results["own_door"], answer) {
					t.Errorf("the attacks on the door did not reach it: %s", got.results["own_door"])
				}
			}
			if diff := cmp.Diff(before, f.snapshot(t)); diff != "" {
				t.Errorf("files of the operator have changed:\n%s", diff)
			}
			f.assertWhole(t, got)
			if left := f.leftBehind(t); len(left) > 0 {
				t.Errorf("left for the next session: %v", left)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		f := newFortress(t, "none")
		t.Cleanup(func() {
			for _, path := range f.leftBehind(t) {
				_ = os.RemoveAll(path)
			}
		})
		f.serve(t)
		opened := f.assault(t, attacks(t)).opened()
		if left := f.leftBehind(t); len(left) == 0 {
			t.Error("without a boundary folders should be left behind, and none are")
		}
		for _, way := range works() {
			if !slices.ContainsFunc(opened, func(o string) bool { return strings.HasPrefix(o, way) }) {
				t.Errorf("without a boundary this should work, and does not: %s", way)
			}
		}
	})
}

// leftBehind lists what the attacks have left in folders of everybody.
func (f *fortress) leftBehind(t *testing.T) (out []string) {
	t.Helper()
	for _, folder := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		found := must.Get(filepath.Glob(fmt.Sprintf("%s/claudeops-left-%d-*", folder, f.agent)))(t)
		out = append(out, found...)
	}
	return out
}

func TestThePageOfTheBoundaryNamesEveryAttack(t *testing.T) {
	page := readFile(t, "../docs/explain/attacks.md")
	for _, a := range attacks(t) {
		if !strings.Contains(page, "| `"+a.name+"` |") {
			t.Errorf("docs/explain/attacks.md does not name the attack %s", a.name)
		}
	}
}
