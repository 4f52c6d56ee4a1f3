//go:build unix

package local

import (
	"os/exec"
	"syscall"
)

// isolate puts the command into a process group of its own: a Ctrl-C at the terminal does not reach git in the middle
// of a write, and a cancelled command is ended with all its children. It is asked first (SIGTERM), so that git removes
// its lock files; a killed git would leave them and block the repository.
//
// A command with a turn is left alone.
func isolate(cmd *exec.Cmd, t *turn) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if t != nil {
		cmd.ExtraFiles = t.files()
		return
	}
	endWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills what is left of a cancelled command's group.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing left is the usual case
	}
}
