//go:build !unix

package git

import "os/exec"

// isolate and endGroup need process groups; elsewhere a git whose context ends is killed alone.
func isolate(*exec.Cmd, bool) {}

func endGroup(*exec.Cmd) {}
