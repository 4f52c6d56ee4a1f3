package processtree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
		limit    time.Duration
		timedOut bool
		canceled bool
	}{
		"a command that ends": {script: "echo $$; setsid sleep 60 & exit 0"},
		"a command that takes too long": {script: "echo $$; setsid sleep 60 & wait", limit: 200 * time.Millisecond,
			timedOut: true},
		"a command that nobody waits for": {script: "echo $$; setsid sleep 60 & wait", canceled: true},
		"a command that ignores its end": {script: "trap '' TERM; echo $$; sleep 60", limit: 200 * time.Millisecond,
			timedOut: true},
		"a command that has closed output": {script: "echo $$; exec >/dev/null 2>&1; sleep 60", limit: 200 * time.Millisecond,
			timedOut: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.canceled {
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			mark := "MARK=" + filepath.Base(t.TempDir()) + strings.ReplaceAll(name, " ", "_")
			command := scripted(c.script)
			command.Env = append(command.Env, mark)
			began := time.Now()
			r, err := Run(ctx, Spec{Command: command, Options: Options{Grace: 100 * time.Millisecond}, Time: c.limit,
				Output: 100})
			if err != nil || r.TimedOut != c.timedOut || r.Canceled != c.canceled || len(r.Remaining) > 0 || r.Stdout.Size == 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if left := Marked(mark); len(left) > 0 {
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
	if err := os.WriteFile(filepath.Join(folder, "program"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	t.Chdir(folder)
	for name, want := range map[string]string{"program": filepath.Join(folder, "program"),
		"./program": filepath.Join(folder, "program"), "missing": "", "/": "", "": ""} {
		if got, err := Find(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}
