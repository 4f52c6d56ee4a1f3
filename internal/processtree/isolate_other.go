//go:build !unix

package processtree

import "os/exec"

// Isolate leaves the command as it is: process groups need Unix. When its context ends the command alone is killed.
func Isolate(*exec.Cmd) {}
