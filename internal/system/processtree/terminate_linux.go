package processtree

import (
	"os"
	"syscall"
	"time"
)

// How long the reaper waits before it checks again whether what it waits for has happened: ever longer.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 50 * time.Millisecond
)

// terminateAll asks all processes of the tree to end (SIGTERM), and reports whether they have done so within the grace.
func (r *reaper) terminateAll(how ending) bool {
	grace := time.NewTimer(r.start.Grace)
	defer grace.Stop()
	if how.orphaned {
		r.killCommand() // its output is not read any more; its children may finish their work
	}
	signalAll(syscall.SIGTERM)
	exited := r.exited
	if r.known() != nil {
		exited = nil
	}
	for {
		select {
		case <-r.empty:
			return true
		case <-exited:
			exited = nil
			signalAll(syscall.SIGTERM) // what it started meanwhile
		case <-grace.C:
			return false
		}
	}
}

// killCommand kills the command, unless it has ended.
func (r *reaper) killCommand() {
	for _, p := range descendants(os.Getpid()) {
		if p.pid == r.pid && p.parent == os.Getpid() {
			_ = p.signal(syscall.SIGKILL) // it has ended meanwhile
		}
	}
}

// signalAll sends a signal to all that runs below this process.
func signalAll(s syscall.Signal) {
	for _, p := range descendants(os.Getpid()) {
		_ = p.signal(s) // what has ended meanwhile is fine; what may not be signalled remains, and is reported
	}
}
