package processtree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a process as /proc describes it (proc_pid_stat(5)).
type process struct {
	pid, parent, group int
	state              string
	started            string // in clock ticks since boot: with the id it names one process for ever
}

// isZombie reports whether only the entry in the process table is left.
func (p process) isZombie() bool { return p.state == "Z" || p.state == "X" }

// readProcess reads one process; false if there is none. The name in brackets may hold anything.
func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const startTime = 19
	if len(fields) <= startTime {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	group, _ := strconv.Atoi(fields[2])
	return process{pid: pid, parent: parent, group: group, state: fields[0], started: fields[startTime]}, true
}

// processes lists the processes of this machine that can be seen. It is not a snapshot: some may end or begin
// meanwhile.
func processes() []process {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := proc.Readdirnames(-1)
	_ = proc.Close()
	var out []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

// descendants lists what runs below a process.
func descendants(of int) []process {
	children := map[int][]process{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p)
	}
	var out []process
	for todo := []int{of}; len(todo) > 0; {
		next := children[todo[0]]
		delete(children, todo[0]) // an id that was used again meanwhile must not lead round in circles
		todo = todo[1:]
		for _, p := range next {
			if !p.isZombie() {
				out = append(out, p)
			}
			todo = append(todo, p.pid)
		}
	}
	return out
}

// signal sends a signal to the process, and to no other that has got its id since.
func (p process) signal(s syscall.Signal) error {
	handle, err := os.FindProcess(p.pid) // by a pidfd where the kernel has them
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if now, ok := readProcess(p.pid); !ok || now.started != p.started {
		return os.ErrProcessDone
	}
	return handle.Signal(s)
}

func pids(all []process) []int {
	var out []int
	for _, p := range all {
		out = append(out, p.pid)
	}
	return out
}

// markedOrGrouped lists the running processes that carry the entry in their environment, as far as this user may look
// at it, or are in the group; group 0 and -1 match none.
func markedOrGrouped(entry string, group int) []process {
	var out []process
	for _, p := range processes() {
		if p.pid != os.Getpid() && !p.isZombie() && (group > 0 && p.group == group || marked(p.pid, entry)) {
			out = append(out, p)
		}
	}
	return out
}

func marked(pid int, entry string) bool {
	if entry == "" {
		return false
	}
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	for have := range bytes.SplitSeq(env, []byte{0}) {
		if string(have) == entry {
			return true
		}
	}
	return false
}

// KillMarked kills the processes that carry the entry in their environment, and returns what it could not kill.
func KillMarked(entry string) []int {
	var failed []process
	for _, p := range markedOrGrouped(entry, -1) {
		if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			failed = append(failed, p)
		}
	}
	return pids(failed)
}

const killFile = "cgroup.kill" // since Linux 5.14

// MakeGroup makes a control group with the name below that of this process. An error says why there can be none: no
// cgroups of version 2, a kernel older than 5.14, no permission, as in most containers and units.
func MakeGroup(name string) (path string, err error) {
	parent, err := ownGroup()
	if err != nil {
		return "", err
	}
	path = filepath.Join(parent, name)
	if err := os.Mkdir(path, 0o755); err != nil { //nolint:gosec // the kernel's own mode; there is nothing secret in it
		return "", err
	}
	if _, err := os.Lstat(filepath.Join(path, killFile)); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

// enterGroup moves this process into a control group, with all its threads.
func enterGroup(path string) error {
	return os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte("0"), 0) //nolint:gosec // it exists; nothing is made
}

// ownGroup returns the folder of this process's control group.
func ownGroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return groupFolder(string(mounts), path)
		}
	}
	return "", errors.New("this process is in no control group of version 2")
}

// groupFolder finds where a control group lies below the mount points (proc_pid_mountinfo(5)).
func groupFolder(mounts, group string) (string, error) {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		sep := 0
		for sep < len(fields) && fields[sep] != "-" {
			sep++
		}
		if sep < 6 || sep+1 >= len(fields) || fields[sep+1] != "cgroup2" {
			continue
		}
		rel, err := filepath.Rel(fields[3], group)
		if err == nil && filepath.IsLocal(rel) {
			return filepath.Join(fields[4], rel), nil
		}
	}
	return "", errors.New("the control group of this process is not mounted")
}

// isGroup reports whether the folder is a control group.
func isGroup(path string) bool {
	info, err := os.Lstat(filepath.Join(path, killFile))
	return err == nil && info.Mode().IsRegular()
}

// RemoveGroup kills the processes in a control group and removes it. A missing group is not an error.
func RemoveGroup(path string) error {
	if path == "" || !isGroup(path) {
		return nil
	}
	const patience, pause = 5 * time.Second, 5 * time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		killErr := killGroup(path)
		err := removeGroup(path)
		if err == nil || os.IsNotExist(err) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the control group %s cannot be removed: %w", path, errors.Join(err, killErr))
		}
	}
}

// killGroup sends SIGKILL to all that is in the group or below it, in one step: a fork does not escape it.
func killGroup(path string) error {
	if path == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(path, killFile), []byte("1"), 0) //nolint:gosec // it exists; nothing is made
}

// removeGroup removes the group and those that its processes have made in it.
func removeGroup(path string) error {
	below, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range below {
		if !entry.IsDir() {
			continue
		}
		if err := removeGroup(filepath.Join(path, entry.Name())); err != nil {
			return err
		}
	}
	return os.Remove(path)
}
