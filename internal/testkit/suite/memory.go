package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	memoryRoot   = "/dev/shm"         // a file system in memory, on Linux
	memoryPrefix = "claudeops-tests-" // the process follows
	memoryNeeded = 2 << 30            // bytes that are free there
)

// useMemory makes a folder below root for the temporary files of tests: a file there takes a tenth of the processor
// time that it takes on a disk. flags make go test use it; its own files stay on the disk. remove removes the folder,
// and with it what tests have left. flags is empty if less than memoryNeeded is free.
func useMemory(root string, free uint64) (flags []string, remove func(), err error) {
	remove = func() {}
	if free < memoryNeeded {
		return nil, remove, nil
	}
	removeLeft(root)
	folder := filepath.Join(root, memoryPrefix+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(folder, 0o755); err != nil { // #nosec G301: of tests, some of which run as another user
		return nil, remove, err
	}
	return []string{"-exec=env TMPDIR=" + folder}, func() { _ = os.RemoveAll(folder) }, nil
}

// removeLeft removes the folders of processes that were killed.
func removeLeft(root string) {
	folders, _ := filepath.Glob(filepath.Join(root, memoryPrefix+"*")) // the pattern is well-formed
	for _, folder := range folders {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(folder), memoryPrefix))
		if err != nil {
			continue
		}
		process, err := os.FindProcess(pid)
		if err == nil && errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			_ = os.RemoveAll(folder)
		}
	}
}
