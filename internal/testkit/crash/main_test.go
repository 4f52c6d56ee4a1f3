//go:build linux

package crash

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// testsAtOnce limits the parallel tests that run at a time, on however few cores.
const testsAtOnce = 12

// TestMain builds claudeops once, without the race detector, and puts it first on PATH. It fails the run if a process
// outlives the tests. Copies of the test binary do other things: see doomed and slowGit.
func TestMain(m *testing.M) {
	if spec := os.Getenv(doomedVariable); spec != "" {
		os.Exit(runDoomed(spec))
	}
	if filepath.Base(os.Args[0]) == "git" {
		os.Exit(runSlowGit(filepath.Dir(os.Args[0]), os.Args[1:]))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	bin, err := os.MkdirTemp("", "claudeops-crash-")
	if err != nil {
		return complain("%v", err)
	}
	defer func() { _ = os.RemoveAll(bin) }()
	binary := filepath.Join(bin, "claudeops")
	build := exec.Command("go", "build", "-o", binary, "../../../cmd/claudeops")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return complain("building claudeops: %v", err)
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return complain("%v", err)
	}
	// These tests wait for processes and disks far more than they compute.
	if err := flag.Set("test.parallel", strconv.Itoa(max(testsAtOnce, runtime.GOMAXPROCS(0)))); err != nil {
		return complain("%v", err)
	}
	code := m.Run()
	if left := outlast(func() []int { return linkedTo("exe", binary) }, patience); len(left) > 0 {
		return complain("processes that outlived the tests, now killed: %v", left)
	}
	return code
}

func complain(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "crash: "+format+"\n", args...)
	return 1
}
