//go:build !unix

package session

import (
	"os"
	"os/exec"
)

// Process groups need Unix: elsewhere the CLI alone is ended.

func isolate(*exec.Cmd) {}
func askGroup(pid int)  { endGroup(pid) }
func endGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
func askProcess(int)         {}
func endProcess(int)         {}
func hold(int) bool          { return false }
func letGo(int)              {}
func left(int, string) []int { return nil }
func carrying(string) []int  { return nil }

// Conceal needs Linux.
func Conceal() {}
