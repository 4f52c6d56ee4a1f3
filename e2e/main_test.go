//go:build e2e && linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// TestMain puts claudeops first on PATH. It fails the run if a server outlives its client.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	bin, err := os.MkdirTemp("", "claudeops-e2e-")
	if err != nil {
		return complain("%v", err)
	}
	defer func() { _ = os.RemoveAll(bin) }()
	if err := os.Chmod(bin, 0o755); err != nil { // #nosec G302: programs, which tests run as several users
		return complain("%v", err)
	}
	binary := filepath.Join(bin, "claudeops")
	if err := makePrograms(bin); err != nil {
		return complain("making claudeops: %v", err)
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return complain("%v", err)
	}
	code := m.Run()
	endBrowser()
	_ = os.RemoveAll(theImage.folder)
	if left := leftovers(binary, patience); len(left) > 0 {
		return complain("servers that outlived their clients, now killed: %v", left)
	}
	return code
}

// programs is the variable with the folder of programs that are built already, from the repository's root.
const programs = "PROGRAMS"

// makePrograms puts claudeops and its connector into a folder: those that make e2e has just built, or new ones.
func makePrograms(folder string) error {
	built := os.Getenv(programs)
	if built == "" {
		build := exec.Command("go", "build", "-ldflags=-s -w", "-o", folder+"/", "../cmd/claudeops",
			"../cmd/claudeops-connect")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		return build.Run()
	}
	if !filepath.IsAbs(built) {
		built = filepath.Join("..", built)
	}
	return os.CopyFS(folder, os.DirFS(built))
}

func complain(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "e2e: "+format+"\n", args...)
	return 1
}

// leftovers returns the processes that still run the binary after the grace, and kills them.
func leftovers(binary string, grace time.Duration) []int {
	pids := running(binary)
	for end := time.Now().Add(grace); len(pids) > 0 && time.Now().Before(end); pids = running(binary) {
		time.Sleep(50 * time.Millisecond) // not our children: there is nothing to wait on
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return pids
}

func running(binary string) []int {
	links, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is valid
	var pids []int
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != binary {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// patience bounds every child, and whatever a test waits for. The slowest child takes about three seconds on two cores,
// and minutes beside twenty others.
const patience = 5 * time.Minute

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
	cmd.WaitDelay = time.Minute
	return cmd
}

// launch starts cmd and kills what is left of its group when the test ends.
func launch(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	runtime.LockOSThread() // Pdeathsig watches the thread that started the child
	t.Cleanup(runtime.UnlockOSThread)
	must.Do(t, cmd.Start())
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
	binary := must.Get(exec.LookPath("claudeops"))(t)
	return binary
}

// installed returns the file of an npm package that matches the pattern, whichever platform's package npm chose.
func installed(t *testing.T, pattern string) string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join("node_modules", pattern))
	if err != nil || len(matches) == 0 {
		t.Fatalf("node_modules/%s is missing: run e2e/setup.sh", pattern)
	}
	file := must.Get(filepath.Abs(matches[0]))(t)
	return file
}

// writeProgram writes a program. No other test may start a process meanwhile: the child would inherit the file opened
// for writing, and the system would refuse to run it (ETXTBSY, golang.org/issue/22315).
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must.Do(t, os.WriteFile(path, []byte(text), 0o755))
}

// fakeCLI writes a program for the Claude CLI's place, and returns its file.
func fakeCLI(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "claude")
	writeProgram(t, file, text)
	return file
}

// memoryOf reads what a process has in memory that can be written, as root or its user can, and returns whether a text
// is in it.
func memoryOf(t *testing.T, pid int) (holds func(text string) bool) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/", pid)
	maps := must.Get(os.ReadFile(folder + "maps"))(t)
	memory, pages := must.Get(os.Open(folder+"mem"))(t), must.Get(os.Open(folder+"pagemap"))(t)
	defer func() { _, _ = memory.Close(), pages.Close() }()
	var all [][]byte
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err == nil && strings.HasPrefix(mode, "rw") {
			all = append(all, written(memory, pages, from, to)...)
		}
	}
	return func(text string) bool {
		return slices.ContainsFunc(all, func(part []byte) bool { return bytes.Contains(part, []byte(text)) })
	}
}

// written is the memory between two addresses, in parts, without the pages that were never used: of what a JavaScript
// engine reserves, nearly all.
func written(memory, pages *os.File, from, to int64) (parts [][]byte) {
	const entry, used = 8, 0b11 << 6 // in the highest byte: in memory, or swapped out (proc_pid_pagemap(5))
	page := int64(os.Getpagesize())
	entries := make([]byte, (to-from)/page*entry)
	known, _ := pages.ReadAt(entries, from/page*entry)
	isUsed := func(at int64) bool {
		i := (at-from)/page*entry + entry - 1
		return at < to && i < int64(known) && entries[i]&used != 0
	}
	for at := from; at < to; at += page {
		end := at
		for isUsed(end) {
			end += page
		}
		if end > at {
			part := make([]byte, end-at)
			n, _ := memory.ReadAt(part, at)
			parts, at = append(parts, part[:n]), end
		}
	}
	return parts
}
