package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// sharedMemory is the file system in memory of Linux.
const sharedMemory = "/dev/shm"

// usualTemp is where Unix keeps temporary files if TMPDIR is not set.
const usualTemp = "/tmp"

// inMemory makes a folder below root the place of temporary files, until remove is called: of tests, which make many
// small files and wait for the disk at each, and of the linker. Nothing changes if TMPDIR names another folder than
// /tmp, if root has less than minScratch free, or if programs in it may not run, as in many containers.
func inMemory(root string) (remove func()) {
	remove = func() {}
	if os.TempDir() != usualTemp || !hasSpace(root) {
		return remove
	}
	dir, err := os.MkdirTemp(root, "t") // short: sockets of tests lie in it, whose paths have at most 107 bytes
	if err != nil {
		return remove
	}
	program := filepath.Join(dir, "program")
	if os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700) != nil || exec.Command(program).Run() != nil {
		_ = os.RemoveAll(dir)
		return remove
	}
	if os.Setenv("TMPDIR", dir) != nil {
		return remove
	}
	return func() {
		_ = os.Unsetenv("TMPDIR")
		_ = os.RemoveAll(dir)
	}
}
