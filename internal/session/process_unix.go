//go:build unix

package session

import (
	"os/exec"
	"syscall"
)

// isolate puts the command into a process group of its own, which ends with this process where the system can do that.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
}

// askGroup asks the processes of a group to end.
func askGroup(group int) { _ = syscall.Kill(-group, syscall.SIGTERM) } // an empty group is fine

// endGroup ends the processes of a group.
func endGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

func askProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }
func endProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
