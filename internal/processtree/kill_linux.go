package processtree

import (
	"os"
	"syscall"
	"time"
)

// killBound is how long the reaper tries to kill a tree before it reports what remains.
const killBound = 10 * time.Second

// killAll kills the processes of the tree until none is left, and reports whether that came within the bound. They are
// all stopped before the first is killed, so that none starts another in place of one that has gone.
func (r *reaper) killAll(bound time.Duration) bool {
	end := time.NewTimer(bound)
	defer end.Stop()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		_ = killGroup(r.start.Group) // what it does not reach is found below this process
		stopAll()
		signalAll(syscall.SIGKILL)
		select {
		case <-r.empty:
			return true
		case <-end.C:
			return false
		case <-time.After(pause):
		}
	}
}

// stopAll stops the processes below this one, those too that are started meanwhile. Those that keep being started faster
// are left to the next round.
func stopAll() {
	const rounds = 100
	stopped := map[[2]any]bool{}
	for range rounds {
		fresh := false
		for _, p := range descendants(os.Getpid()) {
			key := [2]any{p.pid, p.started}
			if !stopped[key] {
				stopped[key], fresh = true, true
				_ = p.signal(syscall.SIGSTOP)
			}
		}
		if !fresh {
			return
		}
	}
}
