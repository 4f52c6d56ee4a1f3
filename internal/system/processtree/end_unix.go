//go:build unix && !linux

package processtree

import (
	"syscall"
	"time"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// endProcesses ends the group, and returns it where it cannot be ended.
func (t *Tree) endProcesses() (remaining []int) {
	const pause, kills = 20 * time.Millisecond, 500
	group := -t.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	grace := time.Now().Add(t.options.Grace)
	for n := 0; syscall.Kill(group, 0) == nil; time.Sleep(pause) {
		if time.Now().Before(grace) {
			continue
		}
		if n++; n > kills {
			return []int{group}
		}
		_ = syscall.Kill(group, syscall.SIGKILL)
	}
	return nil
}
