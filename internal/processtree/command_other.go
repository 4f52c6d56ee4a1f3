//go:build !linux

package processtree

import "os/exec"

// prepare makes the process.
func (c Command) prepare() *exec.Cmd {
	cmd := exec.Command(c.Path) //nolint:noctx // its life is that of the tree
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin = c.Args, c.Env, c.Dir, c.Stdin
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	return cmd
}

// exitOf is how a command ended that was waited for.
func exitOf(cmd *exec.Cmd) Exit {
	state := cmd.ProcessState
	if state == nil {
		return Exit{Code: -1, Text: "its end was not seen"}
	}
	exit := Exit{Code: state.ExitCode()}
	if !state.Success() {
		exit.Text = state.String()
	}
	return exit
}
