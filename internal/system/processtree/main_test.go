//go:build linux

package processtree

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain runs what this binary is started as by the tests: a reaper, or a supervisor that a test kills.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == ReaperCommand:
		syscall.Exit(Reap()) // without the second that the race detector waits
	case len(os.Args) > 1 && os.Args[1] == "init":
		if exit, is := Init(os.Environ()); is {
			syscall.Exit(exit)
		}
		syscall.Exit(orphaned())
	case len(os.Args) > 1 && os.Args[1] == "supervise":
		syscall.Exit(supervise())
	}
	os.Exit(m.Run())
}

// supervise runs a shell script in a tree. It says when the tree has started, ends it when its input ends, and says
// what remained.
func supervise() int {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // as claudeops does
		fmt.Println("prctl:", err)
		return 1
	}
	script, mark, group, lock := os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	kept, err := os.OpenFile(lock, os.O_RDWR, 0) //nolint:gosec // the test's own
	if err == nil {
		err = syscall.Flock(int(kept.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		fmt.Println("lock:", err)
		return 1
	}
	if group == "made" {
		if group, err = MakeGroup("claudeops-try-" + strconv.Itoa(os.Getpid())); err != nil {
			fmt.Println("no group:", err)
			group = ""
		}
	}
	grace, _ := time.ParseDuration(os.Args[6])
	tree, err := Start(Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", script, mark}, Dir: "/",
		Env: []string{"PATH=/usr/bin:/bin", "MARK=" + mark}, Stdout: os.Stdout, Stderr: os.Stderr,
	}, Options{Grace: grace, Mark: "MARK=" + mark, Group: group, Keep: []*os.File{kept}})
	if err != nil {
		fmt.Println("start:", err)
		return 1
	}
	_ = kept.Close()
	fmt.Println("started")
	_, _ = io.Copy(io.Discard, os.Stdin)
	end := tree.End()
	fmt.Printf("ended: %d remain, lost %t\n", len(end.Remaining), end.ReaperLost)
	return 0
}

// named lists the processes whose command line has the word, zombies aside, this one aside.
func named(word string) []int {
	var out []int
	for _, p := range processes() {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if err == nil && p.pid != os.Getpid() && !p.isZombie() && strings.Contains(string(line), word) {
			out = append(out, p.pid)
		}
	}
	return out
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const patience = 2 * time.Minute
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
