//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestMain builds claudeops once and puts it first on PATH. It fails the run if a server outlives its client.
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
	build := exec.Command("go", "build", "-o", bin+"/", "../cmd/claudeops", "../cmd/claudeops-connect")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return complain("building claudeops: %v", err)
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return complain("%v", err)
	}
	code := m.Run()
	if left := leftovers(binary, time.Minute); len(left) > 0 {
		return complain("servers that outlived their clients, now killed: %v", left)
	}
	return code
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
