package processtree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
