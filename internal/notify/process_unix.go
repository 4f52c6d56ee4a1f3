//go:build unix

package notify

import (
	"os/exec"
	"syscall"
)

// isolate puts the command into a process group of its own: a Ctrl-C at the terminal does not reach it in the middle of
// a delivery, and a command that takes too long is ended with all its children.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills children that an ended command started in the meantime.
func endGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing left is the usual case
}
