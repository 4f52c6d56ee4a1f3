package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestTemporaryFilesInMemoryAreRemovedAtTheEndAndAfterAKill(t *testing.T) {
	root := t.TempDir()
	if flags, _, err := useMemory(root, memoryNeeded-1); flags != nil || err != nil {
		t.Errorf("without room: %q, %v", flags, err)
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
	flags, remove, err := useMemory(root, memoryNeeded)
	if err != nil || len(flags) != 1 {
		t.Fatalf("%q, %v", flags, err)
	}
	folder, is := strings.CutPrefix(flags[0], "-exec=env TMPDIR=")
	if err := os.WriteFile(filepath.Join(folder, "left"), nil, 0o600); !is || err != nil {
		t.Errorf("%s: %v", flags[0], err)
	}
	remove()
	left, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil || len(left) != 2 || !isThere(lives) || !isThere(other) {
		t.Errorf("there are %v, %v", left, err)
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
