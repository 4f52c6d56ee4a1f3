//go:build unix && !linux

package processtree

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// Tree is a command that was started, and its process group.
type Tree struct {
	options Options
	cmd     *exec.Cmd
	exited  chan struct{}
}

// Reap needs Linux.
func Reap() int { return 2 }

// Start starts the command in a process group of its own.
func Start(c Command, o Options) (*Tree, error) {
	cmd := c.prepare()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t := &Tree{options: o, cmd: cmd, exited: make(chan struct{})}
	cmd.WaitDelay = o.Grace
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(t.exited)
		_ = cmd.Wait() // its state is asked for
	}()
	return t, nil
}

// Exited is closed when the command has ended, however it did. Other processes of the group may run still.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// End ends the group: its processes are asked (SIGTERM), and killed after Options.Grace. It may be called once.
func (t *Tree) End(bool) End {
	const pause, kills = 20 * time.Millisecond, 500
	group := -t.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	grace := time.Now().Add(t.options.Grace)
	for n := 0; syscall.Kill(group, 0) == nil; time.Sleep(pause) {
		if time.Now().Before(grace) {
			continue
		}
		if n++; n > kills {
			return End{Exit: exitOf(t.cmd), Remaining: []int{group}}
		}
		_ = syscall.Kill(group, syscall.SIGKILL)
	}
	<-t.exited
	return End{Exit: exitOf(t.cmd)}
}

// Marked needs Linux.
func Marked(string) []int { return nil }

// KillMarked needs Linux.
func KillMarked(string) []int { return nil }

// MakeGroup needs Linux.
func MakeGroup(string) (string, error) { return "", errors.ErrUnsupported }

// RemoveGroup needs Linux.
func RemoveGroup(string) error { return nil }
