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
//
// With OthersFirst the others are asked while the command is stopped (SIGSTOP): the Claude CLI would otherwise kill its
// MCP server half a second after it was asked to end itself, in the middle of a write; see docs/adr/0012. It goes on as
// soon as it is alone. SIGKILL ends it even so.
func (r *reaper) terminateAll(how ending) bool {
	grace := time.NewTimer(r.start.Grace)
	defer grace.Stop()
	if how.orphaned {
		r.signalCommand(syscall.SIGKILL) // nobody reads what it says; its children may finish what they are at
	}
	stopped := how.OthersFirst && r.signalCommand(syscall.SIGSTOP)
	signalAll(syscall.SIGTERM)
	exited := r.exited
	if r.known() != nil {
		exited = nil
	}
	pause := firstPause
	check := time.NewTimer(pause)
	defer check.Stop()
	for {
		select {
		case <-r.empty:
			return true
		case <-exited:
			exited = nil
			signalAll(syscall.SIGTERM) // what it started meanwhile
		case <-check.C:
			if stopped && r.onlyCommandLeft() {
				r.signalCommand(syscall.SIGCONT)
				stopped = false
			}
			pause = min(2*pause, longestPause)
			check.Reset(pause)
		case <-grace.C:
			return false
		}
	}
}

// onlyCommandLeft reports whether the command is all that is left of the tree.
func (r *reaper) onlyCommandLeft() bool {
	for _, p := range descendants(os.Getpid()) {
		if p.pid != r.pid {
			return false
		}
	}
	return true
}

// signalCommand sends a signal to the command, unless it has ended.
func (r *reaper) signalCommand(s syscall.Signal) bool {
	for _, p := range descendants(os.Getpid()) {
		if p.pid == r.pid && p.parent == os.Getpid() {
			return p.signal(s) == nil
		}
	}
	return false
}

// signalAll sends a signal to all that runs below this process.
func signalAll(s syscall.Signal) {
	for _, p := range descendants(os.Getpid()) {
		_ = p.signal(s) // what has ended meanwhile is fine; what may not be signalled remains, and is reported
	}
}
