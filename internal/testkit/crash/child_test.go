//go:build linux

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every child. An undisturbed one takes well under a second.
const patience = 60 * time.Second

// child is a process of ours that runs by itself: all of its input is there from the beginning.
type child struct {
	cmd      *exec.Cmd
	cancel   context.CancelFunc
	out, err bytes.Buffer
}

// prepare makes a process in a group of its own, which ends when the test's patience does. Pdeathsig ends it when the
// thread that starts it ends: whoever starts children has locked itself to its thread.
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
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = strings.NewReader(stdin), &c.out, &c.err
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
	if c.cmd.ProcessState == nil {
		t.Fatalf("%v did not end", c.cmd.Args)
	}
	return c.cmd.ProcessState.ExitCode() < 0, c.cmd.ProcessState.ExitCode()
}

// ended is closed when the child has ended. It is still there to be waited for, so its number is of nobody else.
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
	return w.start(t, initialize+"\n"+initialized+"\n"+callOf(2, r)+"\n", "mcp-server")
}

// asked is propose, and the answer.
func (w *world) asked(t *testing.T, r request) answer {
	t.Helper()
	c := w.propose(t, r)
	if _, code := c.wait(t); code != 0 {
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

// said is what a server of propose had written: the phases that it began, and the answer if it got so far.
func (c *child) said(t *testing.T) (a answer, phases []string, done bool) {
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

// run runs a claudeops command to a good end.
func (w *world) run(t *testing.T, args ...string) string {
	t.Helper()
	c := w.start(t, "", args...)
	if _, code := c.wait(t); code != 0 {
		t.Fatalf("claudeops %v: exit %d\n%s%s", args, code, &c.out, &c.err)
	}
	return c.out.String()
}
