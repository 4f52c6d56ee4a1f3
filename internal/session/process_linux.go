package session

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent has the kernel end the CLI when this process is killed. Its MCP server then sees the end of its input.
// (prctl(2), PR_SET_PDEATHSIG: the signal comes when the thread that started it ends; the Go runtime ends no thread that
// it has not locked to a goroutine.)
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// Conceal keeps other processes of this user, the agent's commands among them, from reading this process's environment
// and memory in /proc. It does not keep root from it.
func Conceal() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// hold keeps a process from running on until letGo, whatever it is asked; SIGKILL ends it all the same. It reports whether
// the others of the session can be told from it, without which it must not be held.
func hold(pid int) bool { return syscall.Kill(pid, syscall.SIGSTOP) == nil }

func letGo(pid int) { _ = syscall.Kill(pid, syscall.SIGCONT) }

// left returns the processes that still run in the group, or carry the mark in their environment because they left it.
func left(group int, mark string) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	var out []int
	for _, name := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		state, pgrp := readStat(name)
		if state == "" || state == "Z" || state == "X" {
			continue
		}
		if pgrp == group || marked(pid, mark) {
			out = append(out, pid)
		}
	}
	return out
}

// carrying returns the processes that carry the mark in their environment.
func carrying(mark string) []int { return left(-1, mark) } // no group has this number

// readStat reads state and process group (proc_pid_stat(5)); the name in brackets may hold anything.
func readStat(name string) (state string, group int) {
	text, err := os.ReadFile(name) // #nosec G304: below /proc
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 3 {
		return "", 0
	}
	group, _ = strconv.Atoi(fields[2])
	return fields[0], group
}

func marked(pid int, mark string) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == mark {
			return true
		}
	}
	return false
}
