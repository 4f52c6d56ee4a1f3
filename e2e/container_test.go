//go:build e2e && linux

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// container is a container that runs: a shell in it, the only process of its own, takes commands one after the other.
type container struct {
	cmd      *exec.Cmd // bubblewrap
	in       io.WriteCloser
	out, err *bufio.Reader
}

// startContainer starts the container whose command line sandbox made. It ends with the test, and with all that is in
// it.
func startContainer(t *testing.T, args []string) *container {
	t.Helper()
	c := &container{cmd: command(t, program{path: "bwrap", args: append(args, "sh"), env: []string{path()},
		may: browsing})}
	var pipes [3]error
	var out, errOut io.ReadCloser
	c.in, pipes[0] = c.cmd.StdinPipe()
	out, pipes[1] = c.cmd.StdoutPipe()
	errOut, pipes[2] = c.cmd.StderrPipe()
	must.Do(t, errors.Join(pipes[:]...))
	c.out, c.err = bufio.NewReader(out), bufio.NewReader(errOut)
	launch(t, c.cmd)
	if got := c.exec(t, nil, "true"); got.code != 0 { // it has begun
		t.Fatalf("the container's shell does not work: %+v", got)
	}
	return c
}

// exec runs a command in the container to its end, with more in its environment, as `docker compose exec -e` does.
func (c *container) exec(t *testing.T, env []string, argv ...string) outcome {
	t.Helper()
	return (<-c.start(t, env, argv...)).or(t)
}

// does runs a command of claudeops in the container, and returns what it prints. It ends the test if that fails.
func (c *container) does(t *testing.T, args ...string) string {
	t.Helper()
	got := c.exec(t, nil, append([]string{"/app/claudeops"}, args...)...)
	if got.code != 0 {
		t.Fatalf("claudeops %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// finished is the outcome of a command, or why there is none.
type finished struct {
	outcome
	err error
}

func (f finished) or(t *testing.T) outcome {
	t.Helper()
	if f.err != nil {
		t.Fatalf("the container does not answer: %v\n%s%s", f.err, f.stdout, f.stderr)
	}
	return f.outcome
}

// start is exec that does not wait. One command runs at a time.
func (c *container) start(t *testing.T, env []string, argv ...string) <-chan finished {
	t.Helper()
	words := []string{"env"}
	for _, word := range append(append([]string{}, env...), argv...) {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	// What a command prints ends with a NUL; behind that of its output is its code.
	if _, err := fmt.Fprintf(c.in, "%s </dev/null; code=$?; printf '\\0%%d\\0' $code; printf '\\0' >&2\n",
		strings.Join(words, " ")); err != nil {
		t.Fatal(err)
	}
	done, errText := make(chan finished, 1), make(chan finished, 1)
	go func() {
		text, err := c.err.ReadString(0)
		errText <- finished{outcome{stderr: strings.TrimSuffix(text, "\x00")}, err}
	}()
	go func() {
		text, err := c.out.ReadString(0)
		code, codeErr := c.out.ReadString(0)
		said := <-errText
		n, numberErr := strconv.Atoi(strings.TrimSuffix(code, "\x00"))
		done <- finished{
			outcome{stdout: strings.TrimSuffix(text, "\x00"), stderr: said.stderr, code: n},
			errors.Join(err, codeErr, said.err, numberErr),
		}
	}()
	return done
}

// inside is the path by which this machine reaches a file of the container.
func (c *container) inside(t *testing.T, file string) string {
	t.Helper()
	return filepath.Join("/proc", strconv.Itoa(c.shell(t)), "root", file)
}

// shell is the process of the container's shell, as this machine numbers it: what bubblewrap started.
func (c *container) shell(t *testing.T) int {
	t.Helper()
	for _, pid := range c.everything() {
		if proc(pid, "cmdline") == "sh\n" {
			return pid
		}
	}
	t.Fatal("the container has no shell")
	return 0
}

// everything is all processes below bubblewrap's first.
func (c *container) everything() []int {
	all := childrenOf(c.cmd.Process.Pid)
	for i := 0; i < len(all); i++ {
		all = append(all, childrenOf(all[i])...)
	}
	return all
}

// running returns the processes whose command line holds the text, and is not that of bubblewrap. One that has ended
// and was not waited for yet has none. One that has its parent's command line was forked, and is about to execute
// another program.
func (c *container) running(text string) (pids []int) {
	lines := map[int]string{}
	for _, pid := range c.everything() {
		lines[pid] = proc(pid, "cmdline")
	}
	for pid, line := range lines {
		if line == "" || line == "sh\n" || strings.HasPrefix(line, "bwrap\n") || line == lines[parentOf(pid)] {
			continue
		}
		if strings.Contains(strings.ReplaceAll(line, "\n", " "), text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf is the process that started another; 0 if that has ended.
func parentOf(pid int) int {
	for _, line := range strings.Split(proc(pid, "status"), "\n") {
		if parent, ok := strings.CutPrefix(line, "PPid:"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(parent)); err == nil {
				return n
			}
		}
	}
	return 0
}

// one is the process whose command line holds the text; there must be exactly one.
func (c *container) one(t *testing.T, text string) int {
	t.Helper()
	pids := c.running(text)
	if len(pids) != 1 {
		t.Fatalf("%d processes are %q, want one", len(pids), text)
	}
	return pids[0]
}

// close ends the container as its shell's end does, and holds that nothing in it had gone wrong.
func (c *container) close(t *testing.T) {
	t.Helper()
	if err := c.in.Close(); err != nil {
		t.Error(err)
	}
	if code := exitCode(t, c.cmd); code != 0 {
		t.Errorf("the container ended with %d", code)
	}
}

// awaitEnd waits until a process that is not our child has ended. pidfd_open(2): its descriptor is readable then.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, syscall.ESRCH) {
		return
	}
	must.Do(t, err)
	file := os.NewFile(uintptr(fd), "pidfd")
	defer func() { _ = file.Close() }()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(end).Milliseconds()))
		if n > 0 {
			return
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
	t.Fatalf("process %d did not end within %s: %s", pid, patience, proc(pid, "cmdline"))
}
