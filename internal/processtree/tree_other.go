//go:build !unix

package processtree

import (
	"errors"
	"os/exec"
)

// Tree is a command that was started.
type Tree struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// Reap needs Linux.
func Reap() int { return 2 }

// Start starts the command.
func Start(c Command, o Options) (*Tree, error) {
	cmd := c.prepare()
	t := &Tree{cmd: cmd, exited: make(chan struct{})}
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

// Exited is closed when the command has ended, however it did.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// End ends the command alone: process groups need Unix. It may be called once.
func (t *Tree) End(bool) End {
	_ = t.cmd.Process.Kill() // that it has ended already is fine
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

// Isolate needs process groups: here the command alone is killed when its context ends.
func Isolate(*exec.Cmd) {}
