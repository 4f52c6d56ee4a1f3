package store

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// openedBy returns the other processes that have the file open, as far as this user may see them: those of another
// program than this one. Those of this very program say of themselves that they use the file.
func openedBy(path string) (out []user) {
	wanted, err := os.Stat(path)
	own, ownErr := os.Stat("/proc/self/exe")
	descriptors, globErr := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil || ownErr != nil || globErr != nil {
		return nil
	}
	seen := map[int]bool{os.Getpid(): true}
	for _, fd := range descriptors {
		pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
		if err != nil || seen[pid] {
			continue
		}
		if target, err := os.Readlink(fd); err != nil || filepath.Base(target) != filepath.Base(path) {
			continue
		}
		info, err := os.Stat(fd)
		if err != nil || !os.SameFile(info, wanted) {
			continue
		}
		seen[pid] = true
		if exe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err != nil || !os.SameFile(exe, own) {
			out = append(out, user{PID: pid, What: programOf(pid)})
		}
	}
	return out
}

// programOf returns the name of a process's program, without its arguments, which may hold secrets.
func programOf(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}

// The byte of the shared memory's file that a writer locks; SQLite's file format, section 2.4 of walformat.html.
const walWriteLock = 120

// lockedBy returns the process that holds the write lock of the database; 0 if the system does not say.
func lockedBy(path string) int {
	info, err := os.Stat(path + "-shm")
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	file, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// 1: POSIX  ADVISORY  WRITE 4711 fd:01:131 120 120
		f := strings.Fields(lines.Text())
		const fields = 8
		if len(f) != fields || f[3] != "WRITE" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		from, fromErr := strconv.Atoi(f[6])
		to, toErr := strconv.Atoi(f[7])
		pid, pidErr := strconv.Atoi(f[4])
		if fromErr == nil && toErr == nil && pidErr == nil && from <= walWriteLock && walWriteLock <= to {
			return pid
		}
	}
	return 0
}
