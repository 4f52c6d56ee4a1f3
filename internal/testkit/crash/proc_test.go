//go:build linux

package crash

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// linkedTo lists the processes whose link in /proc (exe, cwd) leads to the path or below it.
func linkedTo(link, path string) []int {
	links, _ := filepath.Glob("/proc/[0-9]*/" + link) // the pattern is valid
	var pids []int
	for _, l := range links {
		target, err := os.Readlink(l)
		if err != nil || target != path && !strings.HasPrefix(target, path+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(l))); err == nil {
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

func childrenOf(pid int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	var out []int
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// proc(5): pid (comm) state ppid ...; comm may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			out = append(out, child)
		}
	}
	return out
}
