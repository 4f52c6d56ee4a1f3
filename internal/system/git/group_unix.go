//go:build unix

package git

import (
	"os/exec"
	"syscall"
)

// isolate puts git into a process group of its own, which is asked to end (SIGTERM) when the context does: a killed git
// would leave its lock files and block the repository. One that is to finish is left alone.
func isolate(cmd *exec.Cmd, finish bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if finish {
		return
	}
	endWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills what is left of the group of a git whose context has ended.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing left is the usual case
	}
}
