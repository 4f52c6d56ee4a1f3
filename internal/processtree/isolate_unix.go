//go:build unix

package processtree

import (
	"os/exec"
	"syscall"
)

// Isolate puts a command that was not started yet, and whose end nobody but us waits for, into a process group of its own: a
// Ctrl-C at the terminal does not reach it, and when its context ends the whole group is killed. Start is for commands that
// may leave their group.
func Isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
