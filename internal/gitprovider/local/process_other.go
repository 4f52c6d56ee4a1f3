//go:build !unix

package local

import "os/exec"

// isolate and endGroup need process groups; elsewhere a cancelled command is killed alone.
func isolate(*exec.Cmd, *turn) {}

func endGroup(*exec.Cmd) {}
