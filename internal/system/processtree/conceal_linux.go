package processtree

import "golang.org/x/sys/unix"

// Conceal keeps other processes of this user, the agent's commands among them, from reading this process's environment
// and memory in /proc. It does not keep root from it.
func Conceal() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
