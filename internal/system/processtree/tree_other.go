//go:build !linux

package processtree

import (
	"errors"
	"os/exec"
)

// Tree is a command that was started; with Unix, its process group, too.
type Tree struct {
	options Options
	cmd     *exec.Cmd
	exited  chan struct{}
}

// Reap needs Linux.
func Reap() int { return 2 }

// Conceal needs Linux.
func Conceal() {}

// Listener needs Linux; elsewhere no process is named.
func Listener(int) string { return "" }

// Start starts the command, with Unix in a process group of its own.
func Start(c Command, o Options) (*Tree, error) {
	cmd := exec.Command(c.Path) //nolint:noctx // its life is that of the tree
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin = c.Args, c.Env, c.Dir, c.Stdin
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	cmd.SysProcAttr, cmd.WaitDelay = ownGroup(), o.Grace
	t := &Tree{options: o, cmd: cmd, exited: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(t.exited)
		_ = cmd.Wait() // its state is asked for
	}()
	return t, nil
}

// Exited returns a channel that is closed when the command has ended, however it did. Other processes of its group may
// still run.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// Contains returns true: it is not known without Linux.
func (t *Tree) Contains(int) bool { return true }

// End ends the command, with Unix its group: its processes are asked (SIGTERM), and killed after Options.Grace. It may
// be called once.
func (t *Tree) End() End {
	remaining := t.endProcesses()
	end := End{Remaining: remaining, Exit: Exit{Code: -1, Text: "its end was not seen"}}
	if len(remaining) == 0 {
		<-t.exited
	}
	if state := t.cmd.ProcessState; state != nil {
		end.Exit = Exit{Code: state.ExitCode()}
		if !state.Success() {
			end.Exit.Text = state.String()
		}
	}
	return end
}

// KillMarked needs Linux.
func KillMarked(string) []int { return nil }

// MakeGroup needs Linux.
func MakeGroup(string) (string, error) { return "", errors.ErrUnsupported }

// RemoveGroup needs Linux.
func RemoveGroup(string) error { return nil }

// KillUser needs Linux.
func KillUser(int) error { return errors.ErrUnsupported }

// EndUser needs Linux.
func EndUser(int) error { return errors.ErrUnsupported }
