package processtree

import "os"

// Contains reports whether a process has come of the command, however far, and runs still. One whose parent has ended
// counts, too. It says nothing of processes that the command talks to.
func (t *Tree) Contains(pid int) bool {
	const furthest = 10_000 // a circle, made by ids that were used again, ends
	for range furthest {
		p, ok := readProcess(pid)
		switch {
		case !ok || p.ended() || pid == os.Getpid():
			return false
		case p.parent == t.reaper.Process.Pid:
			return true
		}
		pid = p.parent
	}
	return false
}
