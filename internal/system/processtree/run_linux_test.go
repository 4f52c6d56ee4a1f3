package processtree

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

func scripted(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, script string
		stdin        string
		most         int
		out, errs    string
		size, code   int
	}{
		{"output of both streams", "echo out; echo err >&2", "", 100, "out\n", "err\n", 4, 0},
		{"the beginning of more than is kept", "printf 0123456789", "", 4, "0123", "", 10, 0},
		{"more than a pipe holds", "head -c 300000 /dev/zero | tr '\\0' x", "", 3, "xxx", "", 300_000, 0},
		{"nothing is kept", "echo out", "", 0, "", "", 0, 0},
		{"an exit code", "echo out; exit 3", "", 100, "out\n", "", 4, 3},
		{"standard input", "cat", "in", 100, "in", "", 2, 0},
		{"standard input that is not read", "exit 0", strings.Repeat("x", 1<<20), 100, "", "", 0, 0},
		{"the environment and no other", "env | grep -v -e PWD -e _= -e SHLVL", "", 100, "PATH=/usr/bin:/bin\n", "", 19, 0},
	} {
		command := scripted(c.script)
		if c.stdin != "" {
			command.Stdin = strings.NewReader(c.stdin)
		}
		r, err := Run(t.Context(), Spec{Command: command, Output: c.most})
		if err != nil || string(r.Stdout.Text) != c.out || string(r.Stderr.Text) != c.errs || r.Stdout.Size != c.size ||
			r.Exit.Code != c.code || r.TimedOut || r.Canceled {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
	if _, err := Run(t.Context(), Spec{Command: Command{Path: filepath.Join(t.TempDir(), "missing"), Args: []string{"x"},
		Dir: "/"}, Output: 10}); err == nil {
		t.Error("what cannot be started has no error")
	}
}

// What a command leaves behind holds the output open; it has ended when Run returns, however the command ended.
func TestRunEndsTheWholeTree(t *testing.T) {
	for name, c := range map[string]struct {
		script   string
		timedOut bool
		canceled bool
	}{
		"a command that ends":             {script: "echo $$; setsid sleep 60 & exit 0"},
		"a command that takes too long":   {script: "echo $$; setsid sleep 60 & wait", timedOut: true},
		"a command that nobody waits for": {script: "echo $$; setsid sleep 60 & wait", canceled: true},
		"a command that ignores its end":  {script: "trap '' TERM; echo $$; sleep 60", timedOut: true},
		"a command that has closed output": {script: "echo $$; exec >/dev/null 2>&1; sleep 60",
			timedOut: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := "MARK=" + rand.Text() // another run of the tests may be under way
			spec := Spec{Command: scripted(c.script), Options: Options{Grace: 100 * time.Millisecond}, Output: 100}
			spec.Env = append(spec.Env, mark)
			var r Result
			var err error
			var began time.Time
			// On a busy machine it may take a while until the command has begun.
			for limit := 200 * time.Millisecond; r.Stdout.Size == 0 && limit < time.Minute; limit *= 4 {
				ctx, cancel := context.WithCancel(t.Context())
				if c.canceled {
					time.AfterFunc(limit, cancel)
				} else if c.timedOut {
					spec.Time = limit
				}
				began = time.Now().Add(limit) // of what is too long
				r, err = Run(ctx, spec)
				cancel()
			}
			if err != nil || r.TimedOut != c.timedOut || r.Canceled != c.canceled || len(r.Remaining) > 0 || r.Stdout.Size == 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if left := pids(markedOrGrouped(mark, -1)); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestFind(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "program"), []byte("#!/bin/sh\n"), 0o700)) //nolint:gosec // it is run
	t.Setenv("PATH", folder)
	t.Chdir(folder)
	for name, want := range map[string]string{"program": filepath.Join(folder, "program"),
		"./program": filepath.Join(folder, "program"), "missing": "", "/": "", "": ""} {
		if got, err := Find(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

const nobody = 65534

// supervisor is a process of its own that runs a script in a tree.
type supervisor struct {
	cmd  *exec.Cmd
	in   io.Closer
	said *bufio.Reader
	word string
	lock string
	dir  string
}

// startSupervisor starts one and waits until its tree has started and its script is ready.
func startSupervisor(t *testing.T, script, group, grace string, uid int) *supervisor {
	t.Helper()
	dir := publicFolder(t)
	s := &supervisor{word: "word-" + rand.Text(), lock: filepath.Join(dir, "lock"), dir: dir}
	binary := filepath.Join(dir, "supervisor.test")
	self, err := os.ReadFile("/proc/self/exe")
	must.Do(t, err)
	// No other test may start a process meanwhile: the child would inherit the file opened for writing, and the system
	// would refuse to run it (ETXTBSY, golang.org/issue/22315).
	syscall.ForkLock.RLock()
	err = os.WriteFile(binary, self, 0o755) //nolint:gosec // another user runs it
	syscall.ForkLock.RUnlock()
	//nolint:gosec // another user locks it
	must.Do(t, err, os.WriteFile(s.lock, nil, 0o666), os.Chmod(s.lock, 0o666))
	s.cmd = exec.Command(binary, "supervise", script, s.word, group, s.lock, grace) //nolint:gosec // the test's own
	if uid != 0 {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	s.in, err = s.cmd.StdinPipe()
	must.Do(t, err)
	out, err := s.cmd.StdoutPipe()
	must.Do(t, err)
	s.said = bufio.NewReader(out)
	must.Do(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	for seen := ""; !strings.Contains(seen, "started\n") || !strings.Contains(seen, "ready\n"); {
		line, err := s.said.ReadString('\n')
		if seen += line; err != nil {
			t.Fatalf("the supervisor said %q, %v", seen, err)
		}
	}
	return s
}

// publicFolder is a folder that every user may reach.
func publicFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "processtree-")
	must.Do(t, err, os.Chmod(dir, 0o755)) //nolint:gosec // see above
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// free reports whether the lock is free.
func (s *supervisor) free(t *testing.T) bool {
	t.Helper()
	f, err := os.OpenFile(s.lock, os.O_RDWR, 0)
	must.Do(t, err)
	defer func() { _ = f.Close() }()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func TestNothingOutlivesAKilledSupervisor(t *testing.T) {
	for _, name := range []string{"a child in the background", "forked twice, nothing inherited",
		"deaf, in a command that is deaf", "forks for ever, deaf"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSupervisor(t, "cd "+t.TempDir()+"\n"+escapes()[name], "made", "200ms", 0)
			if s.free(t) {
				t.Error("the lock is free while the tree runs")
			}
			must.Do(t, s.cmd.Process.Kill())
			until(t, "the lock is free", func() bool { return s.free(t) })
			// The reaper's own command line does not have the word.
			if left := named(s.word); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			_ = s.cmd.Wait()
		})
	}
}

// Most users may make no control group: the reaper does without.
func TestAUserWithoutRightsEndsItsTree(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("the other tests run as such a user already")
		return
	}
	for _, name := range []string{"forked twice, nothing inherited", "forks for ever, deaf",
		"a chain of parents that end"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := publicFolder(t)
			must.Do(t, os.Chmod(work, 0o777)) //nolint:gosec // another user works in it
			s := startSupervisor(t, "cd "+work+"\n"+escapes()[name], "", "200ms", nobody)
			_ = s.in.Close()
			said, _ := io.ReadAll(s.said)
			if !strings.Contains(string(said), "ended: 0 remain, lost false") {
				t.Errorf("it said %q", said)
			}
			_ = s.cmd.Wait()
			if left := named(s.word); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestAUserWithoutRightsMakesNoGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("the other tests run as such a user already")
		return
	}
	s := startSupervisor(t, "echo ready; sleep 1000", "", "200ms", nobody)
	_ = s.in.Close()
	_ = s.cmd.Wait()
	binary := filepath.Join(s.dir, "supervisor.test")
	cmd := exec.Command(binary, "supervise", "echo ready", s.word, "made", s.lock, "1s") //nolint:gosec // the test's own
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "no group:") || !strings.Contains(string(out), "ended: 0 remain") {
		t.Errorf("it said %q, %v", out, err)
	}
}

// A program with the rights of another user cannot be killed. It is reported, and the lock stays until it has ended.
func TestWhatCannotBeKilledKeepsTheLock(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("needs root, to make a program that runs as root")
		return
	}
	strong := filepath.Join(publicFolder(t), "strong")
	program, err := exec.LookPath("setpriv")
	if err != nil {
		t.Log("needs setpriv, of util-linux")
		return
	}
	text, err := os.ReadFile(program)
	//nolint:gosec // another user runs it, as root
	must.Do(t, err, os.WriteFile(strong, text, 0o755), os.Chmod(strong, 0o755|os.ModeSetuid))
	s := startSupervisor(t, "setsid "+strong+
		" --reuid 0 --regid 0 --clear-groups sh -c 'echo ready; while :; do sleep 1; done' $0 & sleep 1000",
		"", "100ms", nobody)
	_ = s.in.Close()
	if said, err := s.said.ReadString('\n'); err != nil || !strings.Contains(said, "ended: 1 remain, lost false") &&
		!strings.Contains(said, "ended: 2 remain, lost false") { // with its sleep
		t.Errorf("it said %q, %v", said, err)
	}
	left := named(s.word)
	if len(left) == 0 || s.free(t) {
		t.Errorf("%d are left, the lock is free: %t", len(left), s.free(t))
	}
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	until(t, "the lock is free", func() bool { return s.free(t) })
}
