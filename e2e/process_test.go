//go:build e2e && linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// patience bounds every child. The slowest takes about three seconds on two cores.
const patience = 60 * time.Second

// program is a command with nothing of this process's environment.
type program struct {
	path  string
	args  []string
	dir   string
	env   []string
	stdin io.Reader
	may   time.Duration // that it may take; 0 is patience
}

type outcome struct {
	stdout, stderr string
	code           int
}

// run runs p to its end.
func run(t *testing.T, p program) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := command(t, p)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	launch(t, cmd)
	return outcome{code: exitCode(t, cmd), stdout: out.String(), stderr: errOut.String()}
}

// command prepares p as the leader of a process group of its own, which dies when the test's patience does.
func command(t *testing.T, p program) *exec.Cmd {
	t.Helper()
	bound := patience
	if p.may > 0 {
		bound = p.may
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Dir, cmd.Env, cmd.Stdin = p.dir, p.env, p.stdin
	// A terminal's interrupt does not reach the group; Pdeathsig ends the child when it ends this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// launch starts cmd and kills what is left of its group when the test ends.
func launch(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	runtime.LockOSThread() // Pdeathsig watches the thread that started the child
	t.Cleanup(runtime.UnlockOSThread)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err == nil {
			_ = cmd.Wait()
		}
	})
}

// exitCode waits for cmd; a child that had to be killed fails the test.
func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || !exit.Exited()) {
		t.Fatalf("%s: %v", cmd.Path, err)
	}
	return cmd.ProcessState.ExitCode()
}

func path() string { return "PATH=" + os.Getenv("PATH") }

// claudeops is the binary that TestMain built.
func claudeops(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("claudeops")
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// installed returns the file of an npm package that matches the pattern, whichever platform's package npm chose.
func installed(t *testing.T, pattern string) string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join("node_modules", pattern))
	if err != nil || len(matches) == 0 {
		t.Fatalf("node_modules/%s is missing: run e2e/setup.sh", pattern)
	}
	file, err := filepath.Abs(matches[0])
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// writeProgram writes a program. No other test may start a process meanwhile: the child would inherit the file opened
// for writing, and the system would refuse to run it (ETXTBSY, golang.org/issue/22315).
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
