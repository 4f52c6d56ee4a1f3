//go:build !unix

package processtree

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }

// endProcesses ends the command alone: process groups need Unix.
func (t *Tree) endProcesses() (remaining []int) {
	_ = t.cmd.Process.Kill() // that it has ended already is fine
	return nil
}
