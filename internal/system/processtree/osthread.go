// This file runs functions on threads of the operating system of their own: one that ends with its function, for
// system calls that change what one thread may do, or one that never ends, for what the kernel ends with its thread.

package processtree

import (
	"runtime"
	"sync"
)

// OnThread runs f on a thread that ends with it, waits for f and returns its error. f must start no goroutine that
// relies on the thread. Other goroutines may have run on the thread before, so what the kernel ends with a thread has
// to be started by Lasting.
//
// It never is the thread that the process began with: the kernel takes that one's user for the user of the whole
// process, and the runtime cannot end it.
func OnThread(f func() error) error {
	done := make(chan error, 1)
	go runOnThread(f, done)
	return <-done
}

func runOnThread(f func() error, done chan<- error) {
	runtime.LockOSThread()
	if isFirst() {
		other := make(chan error, 1)
		go runOnThread(f, other) // this thread is taken, so that it runs on another
		err := <-other
		runtime.UnlockOSThread()
		done <- err
		return
	}
	done <- f() // still locked when the goroutine ends, which ends the thread
}

// OnLastingThread runs f on the one thread that lives as long as this process, waits for f and returns its error. Start
// on it what is to get a signal when this process ends (prctl(2), PR_SET_PDEATHSIG): the kernel sends the signal when
// the thread that started it ends, and Do ends threads. Calls of Lasting wait for each other.
func OnLastingThread(f func() error) error {
	done := make(chan error, 1)
	lasting() <- func() { done <- f() }
	return <-done
}

// lasting starts the thread when it is first needed.
//
//nolint:gochecknoglobals // there is one for the process
var lasting = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})
