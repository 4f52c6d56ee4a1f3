//go:build linux

package crash

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// patience bounds every child. An undisturbed one takes well under a second; one of many on a busy core has taken more
// than a minute. It is less than the time for which a reservation that is stuck holds its files.
const patience = 4 * time.Minute

// spoken is what a command has written. The input of a server ends when it has answered the call that it was told of:
// after the end, a call has only half a minute, which on a busy machine can be too little.
type spoken struct {
	out, err bytes.Buffer
	told     *os.File // what the command reads from; nil: nothing
}

// Write adds to what a command has written.
func (s *spoken) Write(b []byte) (int, error) {
	n, err := s.out.Write(b)
	if bytes.Contains(s.out.Bytes(), []byte(`"id":2,`)) {
		_ = s.told.Close()
	}
	return n, err
}

// tell returns what a command reads: a text, which has room in a pipe, and nothing more before it has answered.
func (s *spoken) tell(text string) (input *os.File, err error) {
	input, s.told, err = os.Pipe()
	if err == nil {
		_, err = io.WriteString(s.told, text)
	}
	return input, err
}

// child is a process of ours that runs by itself: all that it is told is there from the beginning.
type child struct {
	spoken
	cmd    *exec.Cmd
	cancel context.CancelFunc
}

// prepare makes a process in a group of its own, which ends when the test's patience does. Pdeathsig ends it when the
// thread that starts it ends: a goroutine that starts children has locked itself to its thread.
func (w *world) prepare(t *testing.T, program string, args ...string) (*exec.Cmd, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = w.dir, w.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, cancel
}

// start starts a claudeops command.
func (w *world) start(t *testing.T, stdin string, args ...string) *child {
	t.Helper()
	c := &child{}
	c.cmd, c.cancel = w.prepare(t, "claudeops", args...)
	return c.start(t, stdin)
}

func (c *child) start(t *testing.T, stdin string) *child {
	t.Helper()
	if c.cmd.Stderr = &c.err; c.cmd.Stdout == nil {
		c.cmd.Stdout = &c.spoken
	}
	if stdin != "" {
		input, err := c.tell(stdin)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = input.Close() }()
		c.cmd.Stdin = input
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// wait waits for the end, and reports whether the child was killed.
func (c *child) wait(t *testing.T) (killed bool, code int) {
	t.Helper()
	defer c.cancel()
	_ = c.cmd.Wait() // ProcessState tells more
	_ = c.told.Close()
	if c.cmd.ProcessState == nil {
		t.Fatalf("%v did not end", c.cmd.Args)
	}
	return c.cmd.ProcessState.ExitCode() < 0, c.cmd.ProcessState.ExitCode()
}

// ended is closed when the child has ended. It is still waited for, so its number is not reused.
func (c *child) ended() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) // ECHILD: it was waited for
	}()
	return done
}

// kill ends the child at once, with its own children or without.
func (c *child) kill(withChildren bool) {
	if withChildren {
		killWithChildren(c.cmd.Process.Pid)
		return
	}
	_ = c.cmd.Process.Kill() // an error says that it has ended
}

// propose starts a server that is asked for one pull request, as an agent's client does.
func (w *world) propose(t *testing.T, r request) *child {
	t.Helper()
	return w.start(t, proposalOf(r), "mcp-server")
}

// proposalOf is all that a client says which asks a server for one pull request.
func proposalOf(r request) string {
	return initialize + "\n" + initialized + "\n" + callOf(2, "create_pr", r) + "\n"
}

// here runs a claudeops command in this process, with records and locks of its own, as a process has them. It takes
// half of the time. Goroutines may call it.
func (w *world) here(ctx context.Context, stdin string, args ...string) (said *spoken, code int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said = &spoken{}
	streams := cli.Streams{In: strings.NewReader(""), Out: said, Err: &said.err}
	if stdin != "" {
		input, err := said.tell(stdin)
		if err != nil {
			said.err.WriteString(err.Error())
			return said, 1
		}
		defer func() { _, _ = input.Close(), said.told.Close() }()
		streams.In = input
	}
	return said, cli.Run(ctx, args, streams, w.lookup)
}

// asked is the answer of a server in this process that is asked for one pull request.
func (w *world) asked(t *testing.T, r request) answer {
	t.Helper()
	c, code := w.here(t.Context(), proposalOf(r), "mcp-server")
	return c.answered(t, code)
}

// answered returns the answer of a server that has ended with the code.
func (c *spoken) answered(t *testing.T, code int) answer {
	t.Helper()
	if code != 0 {
		t.Fatalf("mcp-server: exit %d\n%s%s", code, &c.out, &c.err)
	}
	a, _, done := c.said(t)
	if !done {
		t.Fatalf("no answer\n%s%s", &c.out, &c.err)
	}
	if a.Error.Code == "upstream_error" || a.Error.Code == "internal" {
		t.Logf("the log of a server that failed:\n%s", &c.err)
	}
	return a
}

// askedAtOnce returns the answers of several servers that are asked for the same at once: one is a process of its own,
// the others are in this process.
func (w *world) askedAtOnce(t *testing.T, r request, several int) (out []answer) {
	t.Helper()
	all, codes := make([]*spoken, several), make([]int, several)
	c := w.propose(t, r)
	var wg sync.WaitGroup
	for i := range several - 1 {
		wg.Go(func() { all[i], codes[i] = w.here(t.Context(), proposalOf(r), "mcp-server") })
	}
	wg.Wait()
	all[several-1] = &c.spoken
	_, codes[several-1] = c.wait(t)
	for i, s := range all {
		out = append(out, s.answered(t, codes[i]))
	}
	return out
}

// said returns the output of a server of propose: the phases that it began, and the answer if it got so far.
func (c *spoken) said(t *testing.T) (a answer, phases []string, done bool) {
	t.Helper()
	for line := range strings.Lines(c.out.String()) {
		if !strings.HasSuffix(line, "\n") {
			break // cut by a kill
		}
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("not a message: %v\n%s", err, line)
		}
		switch {
		case m.Method == "notifications/progress":
			phases = append(phases, m.Params.Message)
		case m.ID == 2 && m.Error != nil:
			t.Fatalf("the call was broken off after the phases %v: %s\n%s", phases, m.Error, &c.err)
		case m.ID == 2:
			a, done = decode[answer](t, m.Result.Structured), true
		}
	}
	return a, phases, done
}

func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("not the JSON that was expected: %v\n%s", err, text)
	}
	return v
}

// run runs a claudeops command in this process to a good end.
func (w *world) run(t *testing.T, args ...string) string {
	t.Helper()
	c, code := w.here(t.Context(), "", args...)
	if code != 0 {
		t.Fatalf("claudeops %v: exit %d\n%s%s", args, code, &c.out, &c.err)
	}
	return c.out.String()
}

// doomedVariable holds a doomed for a copy of the test binary.
const doomedVariable = "CLAUDEOPS_CRASH_DOOMED"

// doomed is the work of a copy of the test binary: it makes the parts as the command line does, proposes, and kills
// itself when the step has taken effect.
type doomed struct {
	Step    string
	Stop    bool          // wait there, to be killed later
	Ago     time.Duration // how far its clock is behind
	Request request
	Look    int // the pull request to look at, as a server does, instead of a proposal
}

// exitSurvived is the exit code of a doomed process that never got to its step.
const exitSurvived = 3

// doom runs a doomed process to its death at the step.
func (w *world) doom(t *testing.T, d doomed) {
	t.Helper()
	c := w.startDoomed(t, d)
	killed, code := c.wait(t)
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !killed || !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the process did not die at the step %q: exit %d\n%s%s", d.Step, code, &c.out, &c.err)
	}
}

// doomSlowly lets something happen while a doomed process has come to the step, before it dies there.
func (w *world) doomSlowly(t *testing.T, d doomed, meanwhile func()) {
	t.Helper()
	d.Stop = true
	c := w.startDoomed(t, d)
	if err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	c.kill(false)
	if killed, code := c.wait(t); !killed {
		t.Fatalf("the process did not come to the step %q: exit %d\n%s%s", d.Step, code, &c.out, &c.err)
	}
}

func (w *world) startDoomed(t *testing.T, d doomed) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{}
	c.cmd, c.cancel = w.prepare(t, self)
	c.cmd.Env = append(c.cmd.Env, doomedVariable+"="+string(spec))
	return c.start(t, "")
}

// runDoomed is the main function of a doomed process.
func runDoomed(spec string) int {
	var d doomed
	err := json.Unmarshal([]byte(spec), &d)
	if err == nil {
		err = d.run(context.Background(), config.Load(config.Environment(os.LookupEnv), forges.All()))
	}
	fmt.Fprintf(os.Stderr, "survived: %v\n", err)
	return exitSurvived
}

func (d doomed) run(ctx context.Context, cfg config.Config) error {
	flow, records, err := newFlow(cfg, nil)
	if err != nil {
		return err
	}
	defer func() { _ = records.Close() }() // what counts was recorded
	flow.Clock.Now = func() time.Time { return time.Now().Add(-d.Ago) }
	flow.Step = func(step string) {
		signal := syscall.SIGKILL
		if d.Stop {
			signal = syscall.SIGSTOP
		}
		if step == d.Step {
			_ = syscall.Kill(os.Getpid(), signal)
			select {} // the signal may take a moment
		}
	}
	if d.Look > 0 {
		return d.look(ctx, records, flow)
	}
	raw, err := json.Marshal(d.Request)
	if err != nil {
		return err
	}
	_, err = flow.Create(ctx, operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "doomed"}}, raw)
	return err
}

// noSecrets finds none: in what these processes propose there are none.
type noSecrets struct{}

func (noSecrets) Secrets(context.Context, string, string) ([]textscan.Secret, error) { return nil, nil }
func (noSecrets) Spread([]string) []int                                              { return nil }
func (noSecrets) Redact(text string) string                                          { return text }
func (noSecrets) Hide(text string) string                                            { return text }

// newFlow makes the use case as the command line does, and its records. wrap, if not nil, stands between it and the
// provider.
func newFlow(cfg config.Config, wrap func(gitprovider.Provider) gitprovider.Provider) (*prflow.Service, *store.Store,
	error) {
	rules, err := policy.Load(cfg.Permissions.PolicyFile)
	if err != nil {
		return nil, nil, err
	}
	records := store.New(cfg.Records.Dir, store.Options{
		DatabaseURL: cfg.Records.DatabaseURL, LocalRoot: func() string { return local.RootIdentity(cfg.Forges.LocalRoot) },
	})
	var provider gitprovider.Provider
	if provider, err = local.New(cfg.Forges.LocalRoot, records.LocalPulls, local.Options{}); err != nil {
		return nil, nil, err
	}
	if wrap != nil {
		provider = wrap(provider)
	}
	registry := gitprovider.NewRegistry(
		[]gitprovider.Registration{{Name: local.Name, Hosts: []string{gitprovider.HostLocal}, Provider: provider}},
		nil, "", config.Repos{Dir: cfg.Mounted.Dir})
	return prflow.New(prflow.Options{
		Registry: registry, Ledger: records.Ledger, History: records.History, Secrets: noSecrets{},
		Authority: prflow.Authority{Policy: rules, Tier: cfg.Permissions.Tier},
		Log:       slog.New(slog.NewTextHandler(os.Stderr, nil)),
		NewID:     func() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() },
		Clock:     prflow.Clock{Now: time.Now, Sleep: func(_ context.Context, d time.Duration) { time.Sleep(d) }},
		Proof:     prflow.Proof{Key: func() ([]byte, error) { return config.LoadMarkKey(cfg.Records.Dir) }},
	}), records, nil
}

// linkedTo lists the processes whose link in /proc (exe, cwd) leads to the path or below it.
func linkedTo(link, path string) (pids []int) {
	for _, pid := range processes() {
		target, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/" + link)
		if err == nil && (target == path || strings.HasPrefix(target, path+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processes lists all processes.
func processes() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(-1) // those that were read
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// outlast waits until running finds no process any more. What is left after the grace is killed and returned.
func outlast(running func() []int, grace time.Duration) []int {
	pids := running()
	for end := time.Now().Add(grace); len(pids) > 0 && time.Now().Before(end); pids = running() {
		time.Sleep(5 * time.Millisecond) // not our children: there is nothing to wait on
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return pids
}

// killWithChildren kills a child of ours together with its own children, as the end of a container does: none of them
// can act on the death of another.
func killWithChildren(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	// Once it is stopped, or has ended, it makes no more children.
	_ = unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
	for _, child := range childrenOf(pid) {
		_ = syscall.Kill(-child, syscall.SIGKILL) // each git command leads a group
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func childrenOf(pid int) (out []int) {
	for _, child := range processes() {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
		if err != nil {
			continue
		}
		// proc(5): pid (comm) state ppid ...; comm may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		out = append(out, child)
	}
	return out
}
