// Package osthread runs a function on a thread of the operating system that ends with it, for system calls that change
// what one thread may do. Nothing else of the process ever runs on such a thread.
package osthread

import "runtime"

// Do runs f on a thread of its own, waits for it and returns its error. f must start no goroutine that relies on the
// thread.
//
// It never is the thread that the process began with: the kernel takes that one's user for the user of the whole
// process, and the runtime cannot end it.
func Do(f func() error) error {
	done := make(chan error, 1)
	go run(f, done)
	return <-done
}

func run(f func() error, done chan<- error) {
	runtime.LockOSThread()
	if isFirst() {
		other := make(chan error, 1)
		go run(f, other) // this thread is taken, so that it runs on another
		err := <-other
		runtime.UnlockOSThread()
		done <- err
		return
	}
	done <- f() // still locked when the goroutine ends, which ends the thread
}
