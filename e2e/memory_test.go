//go:build e2e && linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// memoryOf reads what a process has in memory that can be written, as root or its user can, and returns whether a text
// is in it.
func memoryOf(t *testing.T, pid int) (holds func(text []byte) bool) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	var all [][]byte
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || !strings.HasPrefix(mode, "rw") {
			continue
		}
		all = append(all, written(memory, from, to))
	}
	return func(text []byte) bool {
		for _, part := range all {
			if bytes.Contains(part, text) {
				return true
			}
		}
		return false
	}
}

// written is the memory between two addresses, but for pages that hold nothing or cannot be read.
func written(memory *os.File, from, to int64) (out []byte) {
	const step = 1 << 20
	nothing, block := make([]byte, step), make([]byte, step)
	for at := from; at < to; at += step {
		n, _ := memory.ReadAt(block[:min(step, to-at)], at)
		if !bytes.Equal(block[:n], nothing[:n]) {
			out = append(out, block[:n]...)
		}
	}
	return out
}
