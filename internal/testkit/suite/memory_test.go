package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func TestTemporaryFilesInMemoryAreRemovedAtTheEndAndAfterAKill(t *testing.T) {
	root := t.TempDir()
	if freeBytes(root) < memoryNeeded {
		t.Skip("there is no room, or this is not Linux")
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(root, memoryPrefix+strconv.Itoa(ended.ProcessState.Pid()))
	lives := filepath.Join(root, memoryPrefix+strconv.Itoa(os.Getppid()))
	other := filepath.Join(root, memoryPrefix+"other")
	for _, folder := range []string{killed, lives, other} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range []string{"/elsewhere", ""} {
		t.Setenv("GOTMPDIR", "")
		t.Setenv("TMPDIR", set)
		onDisk := os.TempDir()
		remove, err := useMemory(root)
		if err != nil {
			t.Fatal(err)
		}
		inMemory := filepath.Dir(os.TempDir()) == root
		if inMemory != (set == "") || inMemory && os.Getenv("GOTMPDIR") != onDisk {
			t.Errorf("TMPDIR %q: the tests have %s, and go has %q", set, os.TempDir(), os.Getenv("GOTMPDIR"))
		}
		remove()
	}
	left, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil || len(left) != 2 || !isThere(lives) || !isThere(other) {
		t.Errorf("there are %v, %v", left, err)
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
