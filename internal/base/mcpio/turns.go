package mcpio

import (
	"fmt"
	"runtime/debug"
)

// Turns runs work on stacks of its own, as many pieces at a time as it has room for; the others wait. Work that needs a
// large stack for a moment would leave it to a goroutine that then waits for long, such as that of a connection. nil
// runs work where it is.
type Turns chan struct{}

// NewTurns makes Turns for n pieces of work at a time.
func NewTurns(n int) Turns { return make(Turns, n) }

// Do waits for a turn, and returns when work has ended. A panic of work becomes one of the caller, with its stack. Work
// must not call Do of the same Turns.
func (t Turns) Do(work func()) {
	if t == nil {
		work()
		return
	}
	t <- struct{}{}
	defer func() { <-t }()
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()
		work()
	}()
	<-done
	if panicked != nil {
		panic(panicked)
	}
}
